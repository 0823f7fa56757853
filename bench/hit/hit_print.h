/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_PRINT_H_
#define BENCH_HIT_PRINT_H_

#include "hit_bench.h"

/** Both print the result; @return How many goals were missed. */
int hit_print_text(const hit_opts_t *opts, const hit_speed_t *speed,
                   const hit_purity_t *purity, const hit_delay_t *delay);
int hit_print_json(const hit_opts_t *opts, const hit_speed_t *speed,
                   const hit_purity_t *purity, const hit_delay_t *delay);

#endif
