// SPDX-License-Identifier: Apache-2.0
// WorkerCrossing: an asynchronous or planned collective while it is exchanged between workers. All members of
// this worker have arrived at it. Its functions never wait: a thread that has time calls advance(), one
// thread at a time.
//
//     kUnderWay   messages are in flight, also while a failure is being reported
//     kHere       everything that the members bring has arrived; exchange() is the remaining work, which any
//                 number of threads may share
//     kDone       the outputs are written
//     kStopped    the group is aborted, and the members' tensors are not touched any more
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/status.hpp"
#include "core/collective/call.hpp"
#include "core/collective/exchange.hpp"
#include "core/collective/worker_pieces.hpp"
#include "core/collective/worker_schedule.hpp"
#include "core/collective/worker_tables.hpp"
#include "core/comm/group.hpp"
#include "core/comm/worker_communicator.hpp"

namespace dist {

class WorkerCrossing {
 public:
  enum class State : uint8_t { kIdle, kUnderWay, kHere, kDone, kStopped };
  // The call and descriptor of a member of this worker. Both must live until the crossing has ended.
  struct Side {
    const Call* call = nullptr;
    const CallDescriptor* descriptor = nullptr;
  };
  struct Options {
    uint32_t stream;
    std::size_t most_bytes;   // limit for tensor bytes in flight
    std::size_t cache_bytes;  // size of the last-level cache
  };

  // Throws std::bad_alloc.
  WorkerCrossing(Memory& memory, WorkerCommunicator& communicator, Group& group, const Options& options);
  WorkerCrossing(const WorkerCrossing&) = delete;
  WorkerCrossing& operator=(const WorkerCrossing&) = delete;

  Side& side(int member) noexcept { return sides_[static_cast<std::size_t>(member)].side; }
  // Begins collective `number` of its stream. `signature` is that of all sides.
  void begin(uint64_t number, const Signature& signature) noexcept;
  State advance() noexcept;
  const Exchange& exchange() const noexcept { return *exchange_; }
  // Abandons the collective. Afterwards no thread touches the members' tensors, except those inside
  // exchange().
  void stop() noexcept;
  // Fails the collective for all workers, for example because its deadline has passed.
  void fail(Trouble trouble, int64_t waited_ns) noexcept { communicator_.fail(round_, trouble, waited_ns); }

 private:
  // A member's state, if tensors are sent in pieces.
  struct Member {
    Side side;
    std::optional<TaskList> tasks;
    std::optional<WorkerSchedule> schedule;
    std::optional<WorkerPieces> pieces;
  };
  // The next step of a piece.
  enum class Step : uint8_t { kNext, kFold, kUnpack };

  bool pack_payloads() noexcept;
  bool take_in() noexcept;
  bool lay_out_pieces() noexcept;
  bool go_on_in_pieces() noexcept;
  void refuse(const ErrorRecord& why) noexcept;
  const Call& call() const noexcept { return *sides_[0].side.call; }

  WorkerCommunicator& communicator_;
  Group& group_;
  const Options options_;
  WorkerRound round_;
  State state_ = State::kIdle;
  Step step_ = Step::kNext;
  Signature signature_;
  std::pmr::vector<Member> sides_;
  WorkerTables tables_;
  std::optional<Exchange> exchange_;
};

}  // namespace dist
