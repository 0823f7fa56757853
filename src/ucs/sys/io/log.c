/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/stream.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCS_HELPER_LOG_FILE_ENV "UCX_LOG_FILE"

/* Exported by libucs, declared in a header that libucx-dev does not ship */
void ucs_log_push_handler(ucs_log_func_t handler);

static pthread_once_t ucs_helper_log_once      = PTHREAD_ONCE_INIT;
static pthread_once_t ucs_helper_log_file_once = PTHREAD_ONCE_INIT;

/* The stream of UCX's log; -1: a file of UCX's */
static int ucs_helper_log_stream = STDOUT_FILENO;

static __thread int ucs_helper_log_is_hushed;

ucs_log_component_config_t ucs_helper_log_config = {
        .log_level   = UCS_LOG_LEVEL_WARN,
        .name        = "HELPER",
        .file_filter = "*"};

/* Once, for the program may change its environment */
static void ucs_helper_log_find_stream(void)
{
    const char *file = getenv(UCS_HELPER_LOG_FILE_ENV);

    if ((file != NULL) && !strcmp(file, "stderr")) {
        ucs_helper_log_stream = STDERR_FILENO;
    } else if ((file != NULL) && (*file != '\0') && strcmp(file, "stdout")) {
        ucs_helper_log_stream = -1;
    }
}

int ucs_helper_log_hold(void)
{
    pthread_once(&ucs_helper_log_file_once, ucs_helper_log_find_stream);
    return (ucs_helper_log_stream < 0) ||
           ucs_stream_hold(ucs_helper_log_stream);
}

void ucs_helper_log_release(void)
{
    if (ucs_helper_log_stream >= 0) {
        ucs_stream_release(ucs_helper_log_stream);
    }
}

void ucs_helper_log_set_level(ucs_log_level_t level)
{
    ucs_helper_log_config.log_level = level;
}

static ucs_log_func_rc_t ucs_helper_log_filter(
        const char *file, unsigned line, const char *function,
        ucs_log_level_t level, const ucs_log_component_config_t *comp_conf,
        const char *message, va_list ap)
{
    (void)file;
    (void)line;
    (void)function;
    (void)level;
    (void)comp_conf;
    (void)message;
    (void)ap;
    return ucs_helper_log_is_hushed ? UCS_LOG_FUNC_RC_STOP :
                                      UCS_LOG_FUNC_RC_CONTINUE;
}

static void ucs_helper_log_push_filter(void)
{
    ucs_log_push_handler(ucs_helper_log_filter);
}

void ucs_helper_log_init(void)
{
    ucs_stream_note();
    pthread_once(&ucs_helper_log_file_once, ucs_helper_log_find_stream);
    pthread_once(&ucs_helper_log_once, ucs_helper_log_push_filter);
}

void ucs_helper_log_hush(int hush)
{
    ucs_helper_log_is_hushed = hush;
}
