/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_LOG_CAPTURE_H_
#define TEST_LOG_CAPTURE_H_

#include <ucs/debug/log_def.h>

#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

/** Collects the lines of the helper's log while it lives, whichever thread
 *  writes them; one at a time. */
class log_capture {
public:
    log_capture()
    {
        {
            std::lock_guard<std::mutex> guard(lock());
            all().clear();
        }
        ucs_log_push_handler(handler);
    }

    ~log_capture()
    {
        ucs_log_pop_handler();
    }

    static std::vector<std::string> lines()
    {
        std::lock_guard<std::mutex> guard(lock());
        return all();
    }

    /** Wait for a line that another thread may write. @return Whether there
     *  is one. */
    static bool await()
    {
        std::unique_lock<std::mutex> guard(lock());

        return written().wait_for(guard, std::chrono::seconds(10),
                                  []() { return !all().empty(); });
    }

    static std::string text()
    {
        std::string all;

        for (const auto &line : lines()) {
            all += line + "\n";
        }
        return all;
    }

private:
    static std::vector<std::string> &all()
    {
        static std::vector<std::string> lines;
        return lines;
    }

    static std::mutex &lock()
    {
        static std::mutex mutex;
        return mutex;
    }

    static std::condition_variable &written()
    {
        static std::condition_variable condition;
        return condition;
    }

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
        std::lock_guard<std::mutex> guard(lock());
        all().push_back(line);
        written().notify_all();
        return UCS_LOG_FUNC_RC_STOP;
    }
};

#endif
