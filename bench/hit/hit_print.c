/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_print.h"

#include <stdio.h>

/* The ratio that is promised, and the one that is aimed at */
#define HIT_RATIO_BOUND 1.5
#define HIT_RATIO_AIM   1.2

/* A hit that waits for B's registration waits for a good part of it; what the
 * scheduler takes on a busy machine is shorter */
#define HIT_DELAY_SHARE 0.1

static const char *hit_names[HIT_LAST] = {"helper", "rcache"};

typedef struct hit_goals {
    int is_measured;  /* Most blocks of the domain were hits throughout */
    int is_fast;
    int is_pure;
    int is_seen;      /* The helper did register B by itself */
    int is_undelayed;
} hit_goals_t;


static int hit_goals_check(const hit_opts_t *opts, const hit_speed_t *speed,
                           const hit_purity_t *purity,
                           const hit_delay_t *delay, hit_goals_t *goals)
{
    const hit_latency_t *behind = &delay->behind[HIT_DOMAIN];

    goals->is_measured  = 2 * speed->num_discarded < opts->num_blocks;
    goals->is_fast      = goals->is_measured &&
                          (speed->ratio <= HIT_RATIO_BOUND);
    goals->is_pure      = (purity->num_uses > 0) && purity->is_counted &&
                          (purity->allocs[HIT_DOMAIN] == 0) &&
                          (purity->syscalls[HIT_DOMAIN] == 0);
    goals->is_seen      = (behind->num_samples > 0);
    goals->is_undelayed = goals->is_seen &&
                          (behind->max < opts->slow_ms * 1e6 * HIT_DELAY_SHARE);
    return !goals->is_fast + !goals->is_pure +
           ((opts->num_rounds > 0) && !goals->is_undelayed);
}


static const char *hit_verdict(int is_ok)
{
    return is_ok ? "OK" : "MISSED";
}


static void hit_print_speed(const hit_opts_t *opts, const hit_speed_t *speed,
                            const hit_goals_t *goals)
{
    unsigned i;

    printf("A use of a live region (reg + dereg), %u region(s), %u thread(s), "
           "policy %s, nanoseconds:\n", opts->num_regions, opts->num_threads,
           opts->policy);
    for (i = 0; i < HIT_LAST; ++i) {
        printf("  %-7s median %7.1f   p10 %7.1f   p90 %7.1f\n", hit_names[i],
               speed->median[i], speed->p10[i], speed->p90[i]);
    }
    printf("  ratio %.2f   bound %.1f   %s   (aim %.1f: %s)   "
           "%u of %u blocks not all hits, left out\n", speed->ratio,
           HIT_RATIO_BOUND, hit_verdict(goals->is_fast), HIT_RATIO_AIM,
           hit_verdict(goals->is_measured &&
                                           (speed->ratio <= HIT_RATIO_AIM)),
           speed->num_discarded,
           opts->num_blocks);
}


static void
hit_print_purity(const hit_purity_t *purity, const hit_goals_t *goals)
{
    unsigned i;

    printf("What %llu hits asked for:\n",
           (unsigned long long)purity->num_uses);
    for (i = 0; i < HIT_LAST; ++i) {
        printf("  %-7s allocations %llu   ", hit_names[i],
               (unsigned long long)purity->allocs[i]);
        if (purity->is_counted) {
            printf("with a system call %llu",
                   (unsigned long long)purity->syscalls[i]);
        } else {
            printf("system calls cannot be counted here");
        }
        if (purity->last_syscall[i] >= 0) {
            printf(" (number %d)", purity->last_syscall[i]);
        }
        printf("\n");
    }
    printf("  bound 0 and 0   %s\n", hit_verdict(goals->is_pure));
}


static void hit_print_delay(const hit_opts_t *opts, const hit_delay_t *delay,
                            const hit_goals_t *goals)
{
    unsigned i;

    printf("Hits on A while B (%zu MB, registration modelled as %.0f ms) is "
           "being registered by another thread, nanoseconds:\n",
           opts->slow_length >> 20, opts->slow_ms);
    for (i = 0; i < HIT_LAST; ++i) {
        printf("  %-7s without  p50 %8.0f   p99 %8.0f   max %11.0f   (%zu)\n",
               hit_names[i], delay->free[i].p50, delay->free[i].p99,
               delay->free[i].max, delay->free[i].num_samples);
        printf("  %-7s during   p50 %8.0f   p99 %8.0f   max %11.0f   (%zu)\n",
               "", delay->behind[i].p50, delay->behind[i].p99,
               delay->behind[i].max, delay->behind[i].num_samples);
    }

    if (!goals->is_seen) {
        printf("  the helper never registered B ahead of its use   MISSED\n");
        return;
    }
    printf("  longest %.0f   bound %.0f   %s\n",
           delay->behind[HIT_DOMAIN].max,
           opts->slow_ms * 1e6 * HIT_DELAY_SHARE,
           hit_verdict(goals->is_undelayed));
}


int hit_print_text(const hit_opts_t *opts, const hit_speed_t *speed,
                   const hit_purity_t *purity, const hit_delay_t *delay)
{
    hit_goals_t goals;
    int num_missed;

    num_missed = hit_goals_check(opts, speed, purity, delay, &goals);
    hit_print_speed(opts, speed, &goals);
    hit_print_purity(purity, &goals);
    if (opts->num_rounds > 0) {
        hit_print_delay(opts, delay, &goals);
    }
    return num_missed;
}


static void hit_print_json_latency(const char *name, const hit_latency_t *l)
{
    printf(",\"%s\":{\"samples\":%zu,\"p50_ns\":%.1f,\"p99_ns\":%.1f,"
           "\"max_ns\":%.1f}", name, l->num_samples, l->p50, l->p99, l->max);
}


int hit_print_json(const hit_opts_t *opts, const hit_speed_t *speed,
                   const hit_purity_t *purity, const hit_delay_t *delay)
{
    hit_goals_t goals;
    int num_missed;
    unsigned i;

    num_missed = hit_goals_check(opts, speed, purity, delay, &goals);
    printf("{\"bench\":\"hit_path\",\"policy\":\"%s\",\"regions\":%u,"
           "\"threads\":%u,\"ratio\":%.4f,\"blocks\":%u,\"discarded\":%u,"
           "\"hits\":%llu,\"syscalls_counted\":%s,\"modelled_slow_ms\":%g",
           opts->policy, opts->num_regions, opts->num_threads, speed->ratio,
           opts->num_blocks, speed->num_discarded,
           (unsigned long long)purity->num_uses,
           purity->is_counted ? "true" : "false", opts->slow_ms);
    for (i = 0; i < HIT_LAST; ++i) {
        printf(",\"%s\":{\"median_ns\":%.2f,\"p10_ns\":%.2f,\"p90_ns\":%.2f,"
               "\"allocations\":%llu,\"syscalls\":%llu", hit_names[i],
               speed->median[i], speed->p10[i], speed->p90[i],
               (unsigned long long)purity->allocs[i],
               (unsigned long long)purity->syscalls[i]);
        if (opts->num_rounds > 0) {
            hit_print_json_latency("without", &delay->free[i]);
            hit_print_json_latency("during", &delay->behind[i]);
        }
        printf("}");
    }
    printf(",\"missed\":%d}\n", num_missed);
    return num_missed;
}
