// SPDX-License-Identifier: Apache-2.0
// One worker process of a cell: a new instance of this program.
#pragma once

namespace faults {

// Where a worker finds the page.
inline constexpr int kPageFd = 3;

// Plays worker `worker` of the page behind the descriptor; the process' exit status.
int play_as_process(int page_fd, int worker);

}  // namespace faults
