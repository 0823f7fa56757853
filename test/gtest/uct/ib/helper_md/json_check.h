/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_JSON_CHECK_H_
#define TEST_JSON_CHECK_H_

#include <cstring>
#include <map>
#include <set>
#include <string>

/** Checks that a text is one JSON object, and knows its members as text; those
 *  of inner objects go by "outer.inner". */
class json_check {
public:
    explicit json_check(const std::string &text) : m_text(text)
    {
        m_valid = object("") && (blanks(), m_pos == m_text.size());
    }

    bool is_valid() const
    {
        return m_valid;
    }

    /** Keys of the outermost object. */
    std::set<std::string> keys() const
    {
        std::set<std::string> result;

        for (const auto &member : m_members) {
            if (member.first.find('.') == std::string::npos) {
                result.insert(member.first);
            }
        }
        return result;
    }

    std::string value(const std::string &key) const
    {
        auto found = m_members.find(key);
        return (found == m_members.end()) ? "(none)" : found->second;
    }

private:
    void blanks()
    {
        while ((m_pos < m_text.size()) && strchr(" \t\n\r", m_text[m_pos])) {
            ++m_pos;
        }
    }

    bool take(char wanted)
    {
        blanks();
        if ((m_pos == m_text.size()) || (m_text[m_pos] != wanted)) {
            return false;
        }
        ++m_pos;
        return true;
    }

    bool string(std::string *result = nullptr)
    {
        if (!take('"')) {
            return false;
        }

        const size_t begin = m_pos;
        for (; (m_pos < m_text.size()) && (m_text[m_pos] != '"'); ++m_pos) {
            if ((unsigned char)m_text[m_pos] < 0x20) {
                return false;
            }
            if ((m_text[m_pos] == '\\') &&
                !strchr("\"\\/bfnrtu", m_text[++m_pos])) {
                return false;
            }
        }
        if (result != nullptr) {
            *result = m_text.substr(begin, m_pos - begin);
        }
        return take('"');
    }

    bool number()
    {
        const char *begin = m_text.c_str() + m_pos;
        char *end;

        if (!strchr("-0123456789", *begin)) {
            return false;
        }
        strtod(begin, &end);
        m_pos += end - begin;
        return end != begin;
    }

    bool word(const char *wanted)
    {
        if (m_text.compare(m_pos, strlen(wanted), wanted)) {
            return false;
        }
        m_pos += strlen(wanted);
        return true;
    }

    bool array()
    {
        if (!take('[')) {
            return false;
        }
        if (take(']')) {
            return true;
        }
        do {
            if (!any("")) {
                return false;
            }
        } while (take(','));
        return take(']');
    }

    bool any(const std::string &path)
    {
        blanks();
        switch (m_text[m_pos]) {
        case '{':
            return object(path + ".");
        case '[':
            return array();
        case '"':
            return string();
        default:
            return word("null") || word("true") || word("false") || number();
        }
    }

    bool object(const std::string &prefix)
    {
        std::string key;

        if (!take('{')) {
            return false;
        }
        do {
            if (!string(&key) || !take(':')) {
                return false;
            }
            blanks();
            const size_t begin = m_pos;
            if (!any(prefix + key) || m_members.count(prefix + key)) {
                return false;
            }
            m_members[prefix + key] = m_text.substr(begin, m_pos - begin);
        } while (take(','));
        return take('}');
    }

    std::string                        m_text;
    std::map<std::string, std::string> m_members;
    size_t                             m_pos   = 0;
    bool                               m_valid = false;
};

#endif
