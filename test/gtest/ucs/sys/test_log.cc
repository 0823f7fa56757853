/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/log.h>

#include <gtest/gtest.h>

#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

class test_log : public ::testing::Test {
protected:
    test_log()
    {
        sockaddr_un address = {AF_UNIX, ""};

        snprintf(address.sun_path, sizeof(address.sun_path),
                 "/tmp/test_log.%d", getpid());
        m_path = address.sun_path;
        m_fd   = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        EXPECT_EQ(0, bind(m_fd, (const sockaddr*)&address, sizeof(address)));
        ucs_helper_log_system_socket = m_path.c_str();
    }

    ~test_log()
    {
        ucs_helper_log_set_levels(UCS_LOG_LEVEL_WARN, UCS_LOG_LEVEL_FATAL);
        ucs_helper_log_system_socket = "/dev/log";
        close(m_fd);
        unlink(m_path.c_str());
    }

    /* @return What the system's log has got, empty: nothing */
    std::string got()
    {
        char text[2048];
        ssize_t length = recv(m_fd, text, sizeof(text), 0);

        return std::string(text, (length > 0) ? length : 0);
    }

    std::string m_path;
    int         m_fd;
};

TEST_F(test_log, lines_of_its_level_go_to_the_systems_log)
{
    std::string name = "ucx-helper-md[" + std::to_string(getpid()) + "]: ";

    ucs_helper_log_set_levels(UCS_LOG_LEVEL_ERROR, UCS_LOG_LEVEL_INFO);
    ucs_helper_warn("%d of %s", 7, "them");
    EXPECT_EQ("<12>" + name + "7 of them", got());
    ucs_helper_log(UCS_LOG_LEVEL_INFO, "more");
    EXPECT_EQ("<14>" + name + "more", got());
    ucs_helper_debug("too much");
    EXPECT_EQ("", got());
    ucs_helper_log_set_levels(UCS_LOG_LEVEL_WARN, UCS_LOG_LEVEL_FATAL);
    ucs_helper_warn("for UCX's log alone");
    EXPECT_EQ("", got());
}

TEST_F(test_log, nobody_listens)
{
    unlink(m_path.c_str());
    ucs_helper_log_set_levels(UCS_LOG_LEVEL_ERROR, UCS_LOG_LEVEL_WARN);
    ucs_helper_warn("lost");
    EXPECT_EQ("", got());
}
