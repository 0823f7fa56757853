/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_VMPIN_H_
#define BENCH_VMPIN_H_

#include <pthread.h>
#include <stdint.h>

/**
 * @file vmpin.h
 *
 * What the kernel says this process has pinned (`VmPin` of /proc/self/status):
 * peak and time-average, sampled by a thread of low rate and by the caller at
 * moments that it chooses. The kernel's own word, so that it can be held
 * against what the helper reports of itself.
 */

/** Largest number of samples that are kept for the trace. */
#define VMPIN_TRACE_MAX 65536

typedef struct vmpin_sample {
    uint64_t time;  /**< Nanoseconds since vmpin_start() */
    int64_t  bytes; /**< Above the baseline */
} vmpin_sample_t;

typedef struct vmpin {
    int             fd;          /**< /proc/self/status, -1 when unreadable */
    int64_t         baseline;    /**< Bytes pinned at vmpin_start() */
    int64_t         peak;        /**< Bytes above the baseline */
    int64_t         last;        /**< Bytes above the baseline, last sample */
    double          area;        /**< Byte-nanoseconds since @ref start */
    uint64_t        start;       /**< Nanoseconds, monotonic */
    uint64_t        last_time;   /**< Nanoseconds, monotonic */
    uint64_t        period;      /**< Of the thread, ns; 0: no thread */
    int             is_stopping; /**< Tells the thread to leave */
    unsigned        num_samples; /**< Valid entries of @ref samples */
    vmpin_sample_t  *samples;    /**< NULL when no trace is wanted */
    pthread_t       thread;
    pthread_mutex_t lock;        /**< Guards all of the above once started */
    pthread_cond_t  wakeup;      /**< Signalled with @ref is_stopping */
} vmpin_t;

/** @return Bytes that the process has pinned now, -1 if the kernel won't say */
int64_t vmpin_read(int fd);

/**
 * Take the baseline and start sampling.
 *
 * @param [in] period_ns  Of the sampling thread; 0 starts none.
 * @param [in] is_traced  Nonzero keeps up to @ref VMPIN_TRACE_MAX samples.
 *
 * @return 0, or -1 if /proc or a thread is not to be had.
 */
int vmpin_start(vmpin_t *pin, uint64_t period_ns, int is_traced);

/**
 * Take one sample now, from the calling thread. It counts for the peak and the
 * trace, and for the average only where there is no sampling thread.
 */
void vmpin_sample(vmpin_t *pin);

/** Join the thread and take the last sample; figures are final afterwards. */
void vmpin_stop(vmpin_t *pin);

/** @return Time-average of the bytes pinned above the baseline. */
double vmpin_average(const vmpin_t *pin);

/** What a rank tells of itself; plain doubles, for MPI_Gather. */
typedef struct vmpin_rank {
    double pid;
    double baseline, peak, average; /**< bytes */
    double cpu_share;               /**< below 1: others took the processor */
} vmpin_rank_t;

vmpin_rank_t vmpin_tell(const vmpin_t *pin, double cpu_share);

/** Print the members of a JSON object that say it. */
void vmpin_print(const vmpin_rank_t *rank);

/** Write "seconds bytes" lines; @return 0, or -1 with errno set. */
int vmpin_write_trace(const vmpin_t *pin, const char *path);

#endif
