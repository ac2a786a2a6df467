// SPDX-License-Identifier: Apache-2.0
// A store-load barrier that is free on its frequent side.
//
// A publisher stores a word and then checks for sleepers; a sleeper registers itself and then checks the word
// again. At least one of them must see the other's store. Ordinarily both sides need a full barrier. With the
// system's help (membarrier(2) on Linux) only the sleeper, which is about to wait anyway, pays for the
// barrier.
#pragma once

namespace dist {

// Registers this process. If it returns true, the cheap form may be used, and rare_barrier() orders all
// threads of the process.
bool enable_asymmetric_barriers() noexcept;

// Has the effect of a full barrier in every running thread of the process, between the call and the return.
void rare_barrier() noexcept;

}  // namespace dist
