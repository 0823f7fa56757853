/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/log.h>

#include <pthread.h>
#include <stdarg.h>

/* Exported by libucs, declared in a header that libucx-dev does not ship */
void ucs_log_push_handler(ucs_log_func_t handler);

static pthread_once_t ucs_helper_log_once = PTHREAD_ONCE_INIT;
static __thread int ucs_helper_log_is_hushed;

ucs_log_component_config_t ucs_helper_log_config = {
        .log_level   = UCS_LOG_LEVEL_WARN,
        .name        = "HELPER",
        .file_filter = "*"};

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
    pthread_once(&ucs_helper_log_once, ucs_helper_log_push_filter);
}

void ucs_helper_log_hush(int hush)
{
    ucs_helper_log_is_hushed = hush;
}
