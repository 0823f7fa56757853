/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What most tests include, compiled once: by themselves these headers take
 * longer to compile than most tests do. A compiler that cannot use the compiled
 * form reads this one, so a test names what it includes all the same.
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>
