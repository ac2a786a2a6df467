// SPDX-License-Identifier: Apache-2.0
// A store-to-load barrier that costs its frequent side nothing.
//
// A publisher stores a word and then looks whether anyone sleeps on it; a sleeper says that it sleeps and
// then looks at the word once more. Each must see the other's store or the other's must see its own.
// Ordinarily both pay a full barrier; with the system's help (Linux: membarrier) the sleeper, who has time,
// pays for both.
#pragma once

namespace dist {

// Registers this process. True: the cheap form may be used, and rare_barrier() orders all its threads.
bool enable_asymmetric_barriers() noexcept;

// As if every running thread of the process had executed a full barrier between now and the return.
void rare_barrier() noexcept;

}  // namespace dist
