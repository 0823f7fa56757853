/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef ADI_H_
#define ADI_H_

/** What tells one multipartition code from the other. */
typedef struct adi_code {
    const char *name;
    int        side[5];       /**< Points along each dimension, by class */
    int        iterations[5];
    int        forward;       /**< Doubles a point of a face, elimination */
    int        backward;      /**< and substitution */
    unsigned   flops;         /**< A point and iteration */
} adi_code_t;

/** Classes of both codes, in the order of the arrays. */
#define ADI_CLASSES "SWABC"

/** The whole program. @return Exit code. */
int adi_main(const adi_code_t *code, int argc, char **argv);

#endif
