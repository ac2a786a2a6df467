// SPDX-License-Identifier: Apache-2.0
// The same for DeepSpeed, which also relies on PyTorch to include system headers.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstring>

#include "all.h"
