// SPDX-License-Identifier: Apache-2.0
// The ranks of a peer with any library: processes started by a launcher, forked processes, or threads. Rank 0
// talks with dist_bench. The others sleep on a socket of rank 0, not inside the library, which may spin.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/peers/fault.hpp"
#include "tests/bench/peers/protocol.hpp"

namespace bench::peers {

// A rank's links: rank 0 has one to every other rank, the others have one to rank 0.
class Seat {
 public:
  Seat(int rank, int ranks, std::vector<int> links) : rank_(rank), ranks_(ranks), links_(std::move(links)) {}
  Seat(Seat&& other) noexcept
      : rank_(other.rank_), ranks_(other.ranks_), links_(std::exchange(other.links_, {})) {}
  ~Seat();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // dist_bench's next line, the same on every rank. False: there is none any more.
  bool next(std::string& line);
  // Rank 0 only: a line to dist_bench.
  void say(const Words& words) const;

  // Between the ranks. Throws std::runtime_error where the other end is gone.
  void send(int to, const void* bytes, size_t count) const;
  void receive(int from, void* bytes, size_t count) const;

 private:
  int link(int peer) const { return links_[leads() ? static_cast<size_t>(peer) - 1 : 0]; }

  int rank_, ranks_;
  std::vector<int> links_;
};

// All seats, linked: for ranks that are this process's threads, or that it forks.
std::vector<Seat> make_seats(int ranks);
// Forks ranks, and does each one's part in its process: rank 0's in this one, so that it has dist_bench's pipes and the others end
// with it. What a part throws comes out of its own process.
void run_forked(int ranks, const std::function<void(Seat& seat)>& part);
// One rank's seat. `share` gives rank 0's number to all ranks, by the library's own broadcast.
Seat take_seat(int rank, int ranks, const std::function<void(int& number)>& share);

// One rank's view of a library.
class Library {
 public:
  virtual ~Library() = default;
  virtual Words forms() const { return {""}; }
  // Its barrier.
  virtual void meet() = 0;
  // The request's operation on this rank's part of the data. Empty: it has no such thing. Decided by the
  // request alone, so that all ranks decide alike.
  virtual std::function<void()> operation(const Request& request, Data* data) = 0;

  // For faults, with the most that the library offers against them. Throws where a call returns an error.
  virtual void exchange(const Exchange& mine) = 0;
  virtual double deadline_us() const { return 0; }     // of each call; 0: it has none
  virtual bool starts_alone() const { return false; }  // its ranks are not started by a launcher of its own
  virtual void start_anew() {}                         // as this rank started, all ranks together
  virtual bool has_any_root() const { return true; }   // or 0 alone
  // Tells the others that this rank has failed, and takes part no more. False: by leaving alone.
  virtual bool say_failed() { return false; }
  // Puts the ranks that are left in order again, after an error or not. False: there is no such thing.
  virtual bool mend(bool /*after_error*/) { return false; }
  // Ends the rank without a word.
  [[noreturn]] virtual void vanish();
};

// Answers dist_bench until it says no more. `name` with the library's version. False: this rank is to leave
// without its peers.
bool serve(Seat& seat, Library& library, const std::string& name);

// A name, and what the list of peers started it with where there are several ways: DIST_PEER_SETTING.
std::string with_setting(const std::string& name);

// "4" as a number; ends the program with a word where it is none.
int ranks_argument(int argc, char** argv, int at);

}  // namespace bench::peers
