// SPDX-License-Identifier: Apache-2.0
// One worker process of a cell: a new instance of this program.
#pragma once

namespace faults {

// The descriptor of the page in a worker.
inline constexpr int kPageFd = 3;

// Plays worker `worker` of the page behind the descriptor. Returns the exit status of the process.
int play_as_process(int page_fd, int worker);

}  // namespace faults
