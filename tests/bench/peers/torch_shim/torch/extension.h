// SPDX-License-Identifier: Apache-2.0
// The same as DeepSpeed wants it, which relies on PyTorch's headers for those of the system's, too.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstring>

#include "all.h"
