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

// The connections of a rank: rank 0 has one to every other rank, and the others have one to rank 0.
class Seat {
 public:
  Seat(int rank, int ranks, std::vector<int> links) : rank_(rank), ranks_(ranks), links_(std::move(links)) {}
  Seat(Seat&& other) noexcept
      : rank_(other.rank_), ranks_(other.ranks_), links_(std::exchange(other.links_, {})) {}
  ~Seat();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  bool leads() const { return rank_ == 0; }

  // Reads dist_bench's next line, which is the same on every rank. Returns false if there are no more.
  bool next(std::string& line);
  // Only on rank 0: sends a line to dist_bench.
  void say(const Words& words) const;

  // Communication between the ranks. Throws std::runtime_error if the other end has closed.
  void send(int to, const void* bytes, size_t count) const;
  void receive(int from, void* bytes, size_t count) const;

 private:
  int link(int peer) const { return links_[leads() ? static_cast<size_t>(peer) - 1 : 0]; }

  int rank_, ranks_;
  std::vector<int> links_;
};

// Makes connected seats for ranks that are threads of this process, or that it forks.
std::vector<Seat> make_seats(int ranks);
// Forks the ranks and runs each one's part in its process. Rank 0's part runs in this process, so that it has
// dist_bench's pipes and the others end with it. Exceptions of a part are thrown in its own process.
void run_forked(int ranks, const std::function<void(Seat& seat)>& part);
// Makes one rank's seat. `share` sends rank 0's number to all ranks, using the library's own broadcast.
Seat take_seat(int rank, int ranks, const std::function<void(int& number)>& share);

// One rank's view of a library.
class Library {
 public:
  virtual ~Library() = default;
  virtual Words forms() const { return {""}; }
  // The library's barrier.
  virtual void meet() = 0;
  // Returns the operation of a request on this rank's data, or an empty function if the library does not
  // support it. The decision depends only on the request, so all ranks decide the same.
  virtual std::function<void()> operation(const Request& request, Data* data) = 0;

  // For faults, with the best protection that the library offers. Throws if a call returns an error.
  virtual void exchange(const Exchange& mine) = 0;
  virtual double deadline_us() const { return 0; }     // of each call; 0 = no deadline
  virtual bool starts_alone() const { return false; }  // its ranks are not started by its own launcher
  virtual void start_anew() {}                         // starts this rank again, together with all others
  virtual bool has_any_root() const { return true; }   // false = only root 0
  // Tells the others that this rank has failed, and leaves. Returns false if it can only leave.
  virtual bool say_failed() { return false; }
  // Restores the remaining ranks, after an error or not. Returns false if the library cannot do this.
  virtual bool mend(bool /*after_error*/) { return false; }
  // Ends the rank without an announcement.
  [[noreturn]] virtual void vanish();
};

// Answers dist_bench until there are no more commands. `name` includes the library's version. Returns false
// if this rank has to leave without its peers.
bool serve(Seat& seat, Library& library, const std::string& name);

// Returns the name and, if the list of peers starts it in several ways, the setting of this one:
// DIST_PEER_SETTING.
std::string with_setting(const std::string& name);

// Converts "4" to a number. Ends the program with a message if it is not a number.
int ranks_argument(int argc, char** argv, int at);

}  // namespace bench::peers
