// SPDX-License-Identifier: Apache-2.0
// Connection: one end of a link, as a stream of frames between two ranks.
//
// At most kWindow bytes of a sender are on their way to the receiver's read(). The receiver returns credit
// for the bytes that read() has taken, so neither its queue nor the frames that MPI has yet to transfer
// contain more than that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/net/mpi/job.hpp"
#include "dist/experimental/links.h"

namespace dist::mpi_link {

// The module of one strategy.
struct Module {
  Job& job;
  const dist_link_callbacks& callbacks;
};

// The address that the other end needs for connect().
struct Address {
  uint64_t job;
  uint64_t number;  // of the connection
  int32_t rank;
  int32_t reserved;
};
static_assert(sizeof(Address) <= DIST_LINK_MAX_ADDRESS_BYTES);

// The member functions implement those of dist_link_functions with the same names.
class Connection final : private Posted {
 public:
  // Throws std::bad_alloc.
  Connection(Module& module, dist_link* link);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Address address() const noexcept { return {job_.id(), number_, job_.rank(), 0}; }
  void connect(const void* address, std::size_t bytes) noexcept;
  std::ptrdiff_t write(const dist_link_block* blocks, std::size_t n) noexcept;
  std::ptrdiff_t read(const dist_link_block* blocks, std::size_t n) noexcept;
  void cut() noexcept;

 private:
  void run() noexcept override;
  void take(FrameRef frame) noexcept override;
  void lost() noexcept override { broken_ = true; }
  int peer() const noexcept override { return rank_; }
  const char* begin() noexcept;
  bool next_frame(bool* out_last) noexcept;
  FrameRef frame_for(Kind kind, std::size_t bytes) const noexcept;

  Job& job_;
  const dist_link_callbacks& callbacks_;
  dist_link* const link_;
  const uint64_t number_;

  std::atomic<bool> cut_{false};
  std::atomic<bool> broken_{false};  // the rank of the peer cannot be reached
  std::atomic<bool> open_{false};    // the peer is known
  std::atomic<int> rank_{-1};        // constant once open_ is true, like the next member
  uint64_t peer_number_ = 0;
  std::atomic<int64_t> may_send_;

  // ---- Protected by the job's mutex ----
  bool started_ = false;  // connect() has been called
  bool ended_ = false;    // the callback has returned
  Address given_{};       // the argument of connect()
  bool good_ = false;     // it has the right size

  // ---- Used only by the thread that calls read() ----
  FrameRef frame_;
  std::size_t at_ = 0;
  int64_t taken_ = 0;  // bytes taken since the latest credit was returned

  std::mutex arriving_;  // protects the next two members
  FrameQueue arrived_;
  bool last_ = false;  // the peer has ended the connection
};

}  // namespace dist::mpi_link
