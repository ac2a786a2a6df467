// SPDX-License-Identifier: Apache-2.0
// A run by a function other than dist_run(): errors name that function.
#pragma once

#include "core/base/status.hpp"
#include "dist/run.h"

namespace dist::capi {

Status run_for(const char* call, dist_strategy* strategy, dist_replica_fn fn, void* user_data,
               const dist_run_options* options);

}  // namespace dist::capi
