/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "vmpin.h"
#include "../bench_util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int64_t vmpin_read(int fd)
{
    char text[4096];
    const char *line;
    ssize_t length;

    /* pread of an open file: neither allocates nor opens in the measured run */
    length = pread(fd, text, sizeof(text) - 1, 0);
    if (length <= 0) {
        return -1;
    }

    text[length] = '\0';
    line         = strstr(text, "\nVmPin:");
    return (line == NULL) ? -1 : (strtoll(line + 7, NULL, 10) * 1024);
}

static void vmpin_sample_locked(vmpin_t *pin, int is_averaged)
{
    uint64_t now  = bench_now();
    int64_t bytes = vmpin_read(pin->fd) - pin->baseline;

    if (is_averaged) {
        /* Trapezoid: a change lies anywhere between two samples */
        pin->area     += 0.5 * (double)(bytes + pin->last) *
                         (double)(now - pin->last_time);
        pin->last      = bytes;
        pin->last_time = now;
    }

    if (bytes > pin->peak) {
        pin->peak = bytes;
    }

    if ((pin->samples != NULL) && (pin->num_samples < VMPIN_TRACE_MAX)) {
        pin->samples[pin->num_samples].time  = now - pin->start;
        pin->samples[pin->num_samples].bytes = bytes;
        ++pin->num_samples;
    }
}

static void *vmpin_thread(void *arg)
{
    vmpin_t *pin = arg;
    struct timespec next;

    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&pin->lock);
    while (!pin->is_stopping) {
        next.tv_nsec += (long)(pin->period % 1000000000ul);
        next.tv_sec  += (time_t)(pin->period / 1000000000ul) +
                        (next.tv_nsec / 1000000000l);
        next.tv_nsec %= 1000000000l;
        while (!pin->is_stopping &&
               (pthread_cond_timedwait(&pin->wakeup, &pin->lock, &next) == 0)) {
        }
        vmpin_sample_locked(pin, 1);
    }
    pthread_mutex_unlock(&pin->lock);
    return NULL;
}

static int vmpin_start_thread(vmpin_t *pin)
{
    pthread_condattr_t attr;
    int ret;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pin->wakeup, &attr);
    pthread_condattr_destroy(&attr);

    ret = pthread_create(&pin->thread, NULL, vmpin_thread, pin);
    if (ret == 0) {
        pthread_setname_np(pin->thread, "vmpin");
    }
    return (ret == 0) ? 0 : -1;
}

int vmpin_start(vmpin_t *pin, uint64_t period_ns, int is_traced)
{
    memset(pin, 0, sizeof(*pin));
    pthread_mutex_init(&pin->lock, NULL);
    pin->period = period_ns;
    pin->fd     = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (pin->fd < 0) {
        return -1;
    }

    pin->baseline = vmpin_read(pin->fd);
    if (pin->baseline < 0) {
        goto err_close;
    }

    if (is_traced) {
        pin->samples = malloc(VMPIN_TRACE_MAX * sizeof(*pin->samples));
        if (pin->samples == NULL) {
            goto err_close;
        }
    }

    pin->start     = bench_now();
    pin->last_time = pin->start;
    if ((period_ns != 0) && (vmpin_start_thread(pin) != 0)) {
        goto err_free;
    }

    return 0;

err_free:
    free(pin->samples);
err_close:
    close(pin->fd);
    return -1;
}

void vmpin_sample(vmpin_t *pin)
{
    pthread_mutex_lock(&pin->lock);
    /* The caller samples at chosen moments: with a thread at hand those would
     * bias the average */
    vmpin_sample_locked(pin, pin->period == 0);
    pthread_mutex_unlock(&pin->lock);
}

void vmpin_stop(vmpin_t *pin)
{
    if (pin->period == 0) {
        vmpin_sample(pin);
    } else {
        pthread_mutex_lock(&pin->lock);
        pin->is_stopping = 1;
        pthread_cond_signal(&pin->wakeup);
        pthread_mutex_unlock(&pin->lock);
        pthread_join(pin->thread, NULL);
    }
    close(pin->fd);
}

double vmpin_average(const vmpin_t *pin)
{
    uint64_t elapsed = pin->last_time - pin->start;

    return (elapsed == 0) ? 0 : (pin->area / (double)elapsed);
}

vmpin_rank_t vmpin_tell(const vmpin_t *pin, double cpu_share)
{
    return (vmpin_rank_t){getpid(), (double)pin->baseline, (double)pin->peak,
                          vmpin_average(pin), cpu_share};
}

void vmpin_print(const vmpin_rank_t *rank)
{
    printf("\"pid\":%.0f,\"vmpin_baseline_bytes\":%.0f,"
           "\"vmpin_peak_bytes\":%.0f,\"vmpin_average_bytes\":%.0f,"
           "\"cpu_share\":%.4f", rank->pid, rank->baseline, rank->peak,
           rank->average, rank->cpu_share);
}

int vmpin_write_trace(const vmpin_t *pin, const char *path)
{
    FILE *file = fopen(path, "w");
    unsigned i;

    if (file == NULL) {
        return -1;
    }

    for (i = 0; i < pin->num_samples; ++i) {
        fprintf(file, "%.6f %lld\n", (double)pin->samples[i].time * 1e-9,
                (long long)pin->samples[i].bytes);
    }
    return (fclose(file) == 0) ? 0 : -1;
}
