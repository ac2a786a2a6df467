// SPDX-License-Identifier: Apache-2.0
// A store-load barrier that is free on its frequent side.
//
// A publisher stores a word and then checks for sleepers; a sleeper registers itself and then checks the word
// again. At least one of them must see the other's store. Ordinarily both sides need a full barrier. With the
// system's help (membarrier(2) on Linux) the sleeper, which is not in a hurry, pays for both.
#pragma once

namespace dist {

// Registers this process. True: the cheap form may be used, and rare_barrier() orders all its threads.
bool enable_asymmetric_barriers() noexcept;

// As if every running thread of the process had executed a full barrier between now and the return.
void rare_barrier() noexcept;

}  // namespace dist
