/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_LOG_CAPTURE_H_
#define TEST_LOG_CAPTURE_H_

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

/** Collects the lines of the helper's log while it lives; one at a time. */
class log_capture {
public:
    log_capture()
    {
        lines().clear();
        ucs_log_push_handler(handler);
    }

    ~log_capture()
    {
        ucs_log_pop_handler();
    }

    static std::vector<std::string> &lines()
    {
        static std::vector<std::string> all;
        return all;
    }

private:
    static ucs_log_func_rc_t
    handler(const char *, unsigned, const char *, ucs_log_level_t,
            const ucs_log_component_config_t *comp_conf, const char *format,
            va_list ap)
    {
        char line[1024];

        if (std::string(comp_conf->name) != "HELPER") {
            return UCS_LOG_FUNC_RC_CONTINUE;
        }

        vsnprintf(line, sizeof(line), format, ap);
        lines().push_back(line);
        return UCS_LOG_FUNC_RC_STOP;
    }
};

#endif
