// SPDX-License-Identifier: Apache-2.0
#include "core/net/mpi/leaving.hpp"

#include <algorithm>

namespace dist::mpi_link {

void Leaving::begin(bool failed) noexcept {
  begun_ = true;
  failed_ = failed;
  for (Rank& each : ranks_) each.silent = 0;
  if (rank_ != 0) return user_.send(0, Kind::kLeave, 0);
  at(0).leaves = true;
  decide_if_complete();
}

void Leaving::take(int from, const Head& head) noexcept {
  if (head.kind == Kind::kAsk) user_.send(from, Kind::kAlive, 0);
  if (head.kind == Kind::kGo && rank_ != 0) {
    decision_ = head.value == 1 ? Decision::kFinalize : Decision::kAbandon;
  }
  if (rank_ != 0 && from != 0) return;
  at(from).silent = 0;
  if (rank_ != 0 || head.kind != Kind::kLeave) return;
  at(from).leaves = true;
  decide_if_complete();
}

void Leaving::decide_if_complete() noexcept {
  if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.leaves; })) decide(true);
}

void Leaving::tick() noexcept {
  if (!begun_ || decision_ != Decision::kNone) return;
  if (failed_ && ++waited_ > kTicks) return decide(false);
  const int watched = static_cast<int>(ranks_.size());
  for (int r = rank_ == 0 ? 1 : 0; r < watched; ++r) {
    if (++at(r).silent > kTicks) return decide(false);
    user_.send(r, Kind::kAsk, 0);
  }
}

void Leaving::decide(bool all) noexcept {
  decision_ = all ? Decision::kFinalize : Decision::kAbandon;
  if (rank_ != 0) return;
  for (int r = 1; r < static_cast<int>(ranks_.size()); ++r) user_.send(r, Kind::kGo, all ? 1 : 0);
}

}  // namespace dist::mpi_link
