/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "adi.h"

/* Scalar pentadiagonal: two rows of each of the systems go forward */
int main(int argc, char **argv)
{
    static const adi_code_t code = {
        .name       = "sp",
        .side       = {12, 36, 64, 102, 162},
        .iterations = {100, 400, 400, 400, 400},
        .forward    = 22,
        .backward   = 10,
        .flops      = 970
    };

    return adi_main(&code, argc, argv);
}
