/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/* A library that communicates while it is loaded; the program has the rest */
void attack_construct(void);

__attribute__((constructor)) static void attack_module_init(void)
{
    attack_construct();
}
