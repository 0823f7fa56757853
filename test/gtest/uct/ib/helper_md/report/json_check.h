/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_JSON_CHECK_H_
#define TEST_JSON_CHECK_H_

#include <jansson.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

/** One JSON object and its members as text; those of inner objects go by
 *  "outer.inner". */
class json_check {
public:
    explicit json_check(const std::string &text)
        : m_root(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES,
                            nullptr))
    {
    }

    ~json_check()
    {
        json_decref(m_root);
    }

    bool is_valid() const
    {
        return json_is_object(m_root);
    }

    std::set<std::string> keys() const
    {
        std::set<std::string> result;
        const char *key;
        json_t *value;

        json_object_foreach(m_root, key, value) {
            result.insert(key);
        }
        return result;
    }

    std::string value(const std::string &path) const
    {
        size_t dot    = path.find('.');
        json_t *value = json_object_get(m_root, path.substr(0, dot).c_str());
        char number[32];

        if (dot != std::string::npos) {
            value = json_object_get(value, path.substr(dot + 1).c_str());
        }
        if (json_is_string(value)) {
            return json_string_value(value);
        }
        if (json_is_number(value)) {
            snprintf(number, sizeof(number), "%.15g", json_number_value(value));
            return number;
        }
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        std::string result(text ? text : "(none)");
        free(text);
        return result;
    }

private:
    json_t *m_root;
};

#endif
