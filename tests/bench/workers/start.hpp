// SPDX-License-Identifier: Apache-2.0
// Starts the worker processes and waits for them.
#pragma once

#include <sys/types.h>

#include <vector>

#include "tests/bench/workers/page.hpp"

namespace bench {

// Starts the page's workers on addresses of their own. They end with the thread that calls this function.
std::vector<pid_t> start_workers(Page& page, int page_fd);
// Waits for all workers. Returns false if one failed or was killed; the page then has the reason.
bool await_workers(Page& page, const std::vector<pid_t>& workers);

}  // namespace bench
