/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/io/log.h>
#include <ucs/sys/io/stream.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#define UCS_HELPER_LOG_FILE_ENV "UCX_LOG_FILE"

/* Exported by libucs, declared in a header that libucx-dev does not ship */
void ucs_log_push_handler(ucs_log_func_t handler);

static pthread_once_t ucs_helper_log_once      = PTHREAD_ONCE_INIT;
static pthread_once_t ucs_helper_log_file_once = PTHREAD_ONCE_INIT;

/* The stream of UCX's log; -1: a file of UCX's */
static int ucs_helper_log_stream = STDOUT_FILENO;

static __thread int ucs_helper_log_is_hushed;

/* What goes to UCX's log, and to the system's. The component's level is the more
 * detailed of both. Set before other threads log. */
static ucs_log_level_t ucs_helper_log_level        = UCS_LOG_LEVEL_WARN;
static ucs_log_level_t ucs_helper_log_system_level = UCS_LOG_LEVEL_FATAL;

const char *ucs_helper_log_system_socket = "/dev/log";

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

/* Not by syslog(), which keeps a descriptor in the program's table and does not see
 * that the program put another file there. What cannot be sent at once is lost. */
static void ucs_helper_log_send(ucs_log_level_t level, const char *message,
                                va_list ap)
{
    int severity = (level <= UCS_LOG_LEVEL_ERROR) ? LOG_ERR :
                   (level <= UCS_LOG_LEVEL_WARN)  ? LOG_WARNING :
                   (level <= UCS_LOG_LEVEL_INFO)  ? LOG_INFO : LOG_DEBUG;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[1024];
    int fd, length;

    length = snprintf(text, sizeof(text), "<%d>ucx-helper-md[%d]: ",
                      LOG_USER | severity, getpid());
    vsnprintf(text + length, sizeof(text) - length, message, ap);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s",
             ucs_helper_log_system_socket);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL,
                     (const struct sockaddr*)&to, sizeof(to));
        close(fd);
    }
}

static ucs_log_func_rc_t ucs_helper_log_filter(
        const char *file, unsigned line, const char *function,
        ucs_log_level_t level, const ucs_log_component_config_t *comp_conf,
        const char *message, va_list ap)
{
    if (ucs_helper_log_is_hushed) {
        return UCS_LOG_FUNC_RC_STOP;
    }
    if (comp_conf != &ucs_helper_log_config) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    if (level <= ucs_helper_log_system_level) {
        ucs_helper_log_send(level, message, ap);
    }
    return (level <= ucs_helper_log_level) ? UCS_LOG_FUNC_RC_CONTINUE :
                                             UCS_LOG_FUNC_RC_STOP;
}

static void ucs_helper_log_push_filter(void)
{
    ucs_log_push_handler(ucs_helper_log_filter);
}

void ucs_helper_log_set_levels(ucs_log_level_t level, ucs_log_level_t system)
{
    ucs_helper_log_level            = level;
    ucs_helper_log_system_level     = system;
    ucs_helper_log_config.log_level = (level > system) ? level : system;
    if (system > UCS_LOG_LEVEL_FATAL) {
        pthread_once(&ucs_helper_log_once, ucs_helper_log_push_filter);
    }
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
