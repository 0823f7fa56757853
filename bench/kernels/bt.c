/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "adi.h"

/* Block tridiagonal: 5 x 5 blocks and right-hand sides go forward */
int main(int argc, char **argv)
{
    static const adi_code_t code = {
        .name       = "bt",
        .side       = {12, 24, 64, 102, 162},
        .iterations = {60, 200, 200, 200, 200},
        .forward    = 5 * 5 + 5,
        .backward   = 5,
        .flops      = 3200
    };

    return adi_main(&code, argc, argv);
}
