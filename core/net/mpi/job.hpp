// SPDX-License-Identifier: Apache-2.0
// Job: this process as a rank of its MPI job. The only Job exists from the first use of the module to the end
// of the process.
//
// A thread of the job initializes MPI if the host has not, receives frames, completes transfers, and calls
// the callbacks of the connections. send() calls MPI on the caller's thread. The module calls MPI under one
// mutex, and no call waits for another process, except while MPI starts and ends.
//
// MPI has no function that waits without a busy loop. So the thread polls: without a pause while frames are
// being exchanged, and with growing pauses afterwards (job.cpp). If the host has initialized MPI, the thread
// polls only while a strategy exists, because no thread may be using MPI when the host finalizes it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/net/mpi/frame.hpp"
#include "core/net/mpi/leaving.hpp"
#include "dist/experimental/links.h"

namespace dist::mpi_link {

// The part of a connection that the job uses. Posting it does not allocate memory.
class Posted {
 public:
  virtual ~Posted() = default;
  // Called on the job's thread, without a lock.
  virtual void run() noexcept = 0;
  // Called on the job's thread, under the job's mutex, like lost(): a frame for this connection has arrived.
  virtual void take(FrameRef frame) noexcept = 0;
  // No more frames can be sent to or received from this rank.
  virtual void lost() noexcept = 0;
  virtual int peer() const noexcept = 0;  // the rank; -1: not known yet

 private:
  friend class Job;
  Posted* next_ = nullptr;
  bool posted_ = false;
  bool runs_ = false;
  bool waits_ = false;  // until there is room() for data to its peer
};

class Job final : private LeavingUser {
 public:
  // Starts the job if this is the first call. Does not wait. Returns an empty string, or the reason why MPI
  // cannot be used. Throws std::bad_alloc and std::system_error.
  static std::string use(Job** out);

  // Waits until MPI has started. Returns an empty string, or the reason why it has not.
  std::string await_start() noexcept;
  // Implements dist_link_functions.meet. `out_why` is empty on success.
  void meet(dist_link_meeting& meeting, std::string* out_why);
  // A strategy uses the job from open() to close(). `lease_ns` also applies when the ranks leave: a rank that
  // does not answer for a lease is considered dead.
  void open(int64_t lease_ns) noexcept;
  void close() noexcept;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  uint64_t id() const noexcept { return id_; }  // equal in all ranks of the job, and different in other jobs

  // Adds a connection and returns its number. Numbers are never reused. Throws std::bad_alloc.
  uint64_t add(Posted& connection);
  // Waits until `ended`, which is called under the job's mutex, returns true and the job's thread no longer
  // uses the connection. Then removes the connection.
  template <class Ended>
  void remove(uint64_t number, Posted& connection, const Ended& ended) noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended() && !connection.posted_ && !connection.runs_; });
    connections_.erase(number);
  }
  // Schedules a call to run() on the job's thread.
  void post(Posted& connection) noexcept;
  // The same, after calling `change` under the job's mutex.
  template <class Change>
  void post_after(Posted& connection, const Change& change) noexcept {
    const std::scoped_lock lock(mutex_);
    change();
    post_locked(connection);
  }
  template <class Read>
  auto locked(const Read& read) noexcept {
    const std::scoped_lock lock(mutex_);
    return read();
  }

  // Whether data may be sent to the rank of this connection now. If not, run() is called when it may.
  bool room(Posted& connection) noexcept;
  // Sends the frame. If MPI can no longer be used or reports an error, the connections to that rank are lost.
  void send(int rank, FrameRef frame) noexcept;

 private:
  // kEnds: the ranks have decided. If they have agreed to it, MPI is being finalized.
  enum class State { kStarting, kFailed, kRuns, kEnds, kEnded };
  struct Peer {
    FrameQueue sends;     // incomplete transfers, in order
    FrameQueue receives;  // the same
    std::size_t bytes_out = 0;
    bool lost = false;
  };

  explicit Job(bool initializes) noexcept;
  void serve() noexcept;
  std::string start();
  void create_communicator();
  // Called when MPI is being finalized, possibly by the host.
  static int finalizing(MPI_Comm comm, int key, void* job, void* extra) noexcept;
  // Called when the process exits.
  static void exiting(int status, void* job) noexcept;

  // The mutex must be held for the following.
  bool leave(std::unique_lock<std::mutex>& lock) noexcept;
  void wake() noexcept;
  void post_locked(Posted& connection) noexcept;
  bool run_posted(std::unique_lock<std::mutex>& lock) noexcept;
  bool polls() const noexcept {
    return state_ == State::kRuns && (initializes_ || strategies_ > 0 || meets_);
  }
  bool progress() noexcept;
  bool receive() noexcept;
  bool complete(int rank, Peer& peer) noexcept;
  void take(int from, FrameRef frame) noexcept;
  void take_text(Frame& frame) noexcept;
  void send_locked(int rank, FrameRef frame) noexcept;
  void send(int rank, Kind kind, uint64_t value) noexcept override;
  void lose(int rank) noexcept;
  void end() noexcept;

  const bool initializes_;  // if so, this module also finalizes MPI
  int rank_ = -1;           // constant from kRuns on, like the next four members
  int size_ = 0;
  uint64_t id_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::string host_;
  const int64_t process_;
  std::atomic<int64_t> lease_ns_;

  std::mutex mutex_;  // protects everything below, and all calls to MPI
  std::condition_variable changed_;
  std::condition_variable wake_;
  bool sleeps_ = false;
  bool woken_ = false;
  State state_ = State::kStarting;
  int strategies_ = 0;
  bool meets_ = false;  // from a meeting until a strategy is open
  std::string why_;     // why starting has failed
  std::vector<Peer> peers_;
  std::size_t num_pending_ = 0;             // number of frames in peers_
  MPI_Message arrived_ = MPI_MESSAGE_NULL;  // a message that has arrived and has no memory yet
  MPI_Status arrival_{};
  std::unordered_map<uint64_t, Posted*> connections_;
  uint64_t numbers_ = 0;
  Posted* first_posted_ = nullptr;
  Posted** end_of_posted_ = &first_posted_;
  int64_t rounds_ = 0;                    // meetings that have begun on this rank
  std::map<int64_t, std::string> texts_;  // of rank 0, by the number of the meeting
  std::optional<Leaving> leaving_;
  int64_t next_tick_ns_ = 0;
};

}  // namespace dist::mpi_link
