// SPDX-License-Identifier: Apache-2.0
// The standard headers that most of the library uses, precompiled. Every file still includes what it needs
// itself, so that -Db_pch=false, which `./dev lint` sets, builds without this one.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
