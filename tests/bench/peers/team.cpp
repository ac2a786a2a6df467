// SPDX-License-Identifier: Apache-2.0
// The seats, and one rank's part of a measurement.
#include "tests/bench/peers/team.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>

namespace bench::peers {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": the other end is gone");
}

// An address that is not in any file system and disappears with the socket.
socklen_t abstract_address(int number, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "dist_bench-peer-%d", number);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

int new_socket() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error("socket: none left");
  return fd;
}

struct Report {  // of a rank after a block; its intervals follow
  uint64_t wrong, intervals;
};

// Returns rank 0's answer; on the other ranks, returns nothing.
Words measure(Seat& seat, Library& library, const Request& request) {
  const bool reduces = request.operation == Operation::kAllReduce;
  std::unique_ptr<Data> data;
  if (reduces) {
    data = std::make_unique<Data>(request.dtype, request.bytes, seat.ranks(), request.layout);
    data->expect(request.plan.in_a_row());
    data->allow_rounding();  // a peer may sum in any order
  }
  const std::function<void()> operation = library.operation(request, data.get());
  if (!operation) return {"@no", "not offered"};

  Stopwatch watch(seat.ranks(), request.plan);
  replica_block(
      request.plan, watch, data.get(), seat.rank(), [&] { return library.meet(), true; },
      [&] { return operation(), true; });

  Report mine{data ? data->wrong() : 0, watch.of(seat.rank()).size()};
  if (!seat.leads()) {
    seat.send(0, &mine, sizeof mine);
    seat.send(0, watch.of(seat.rank()).data(), mine.intervals * sizeof(Stopwatch::Interval));
    return {};
  }
  for (int rank = 1; rank < seat.ranks(); ++rank) {
    Report theirs;
    seat.receive(rank, &theirs, sizeof theirs);
    std::vector<Stopwatch::Interval> intervals(theirs.intervals);
    seat.receive(rank, intervals.data(), intervals.size() * sizeof(Stopwatch::Interval));
    for (const Stopwatch::Interval& i : intervals) watch.record(rank, i.begin_us, i.end_us);
    mine.wrong += theirs.wrong;
  }
  if (mine.wrong != 0) return {"@failed", "wrong result"};
  Samples samples;
  watch.collect(samples);
  Words answer{"@times"};
  for (const double us : samples) answer.push_back(std::to_string(us));
  return answer;
}

}  // namespace

Seat::~Seat() {
  for (const int fd : links_) close(fd);
}

bool Seat::next(std::string& line) {
  uint32_t size = 0;
  if (!leads()) {
    receive(0, &size, sizeof size);
    line.resize(size);
    receive(0, line.data(), size);
    return size != 0;
  }
  const bool more = std::getline(std::cin, line) && line != "quit";
  if (!more) line.clear();
  size = static_cast<uint32_t>(line.size());
  for (int rank = 1; rank < ranks_; ++rank) {
    send(rank, &size, sizeof size);
    send(rank, line.data(), size);
  }
  return more;
}

void Seat::say(const Words& words) const {
  std::printf("%s\n", join(words).c_str());
  std::fflush(stdout);
}

void Seat::send(int to, const void* bytes, size_t count) const {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::send(link(to), from, count, MSG_NOSIGNAL);
    if (done <= 0) fail("send");
    from += done;
    count -= static_cast<size_t>(done);
  }
}

void Seat::receive(int from, void* bytes, size_t count) const {
  if (count != 0 && recv(link(from), bytes, count, MSG_WAITALL) != static_cast<ssize_t>(count)) fail("recv");
}

std::vector<Seat> make_seats(int ranks) {
  std::vector<int> leaders;
  std::vector<Seat> others;
  for (int rank = 1; rank < ranks; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw std::runtime_error("socketpair: none left");
    leaders.push_back(pair[0]);
    others.emplace_back(rank, ranks, std::vector<int>{pair[1]});
  }
  std::vector<Seat> seats;
  seats.emplace_back(0, ranks, std::move(leaders));
  for (Seat& seat : others) seats.push_back(std::move(seat));
  return seats;
}

void run_forked(int ranks, const std::function<void(Seat& seat)>& part) {
  std::vector<Seat> seats = make_seats(ranks);
  std::vector<pid_t> others;
  int mine = 0;
  for (int rank = 1; rank < ranks && mine == 0; ++rank) {
    const pid_t process = fork();
    if (process < 0) throw std::runtime_error("fork: no process left");
    if (process == 0) mine = rank;
    if (process > 0) others.push_back(process);
  }
  {
    Seat seat = std::move(seats[static_cast<size_t>(mine)]);
    seats.clear();  // closes the other ends; otherwise, a rank would not notice that rank 0 has ended
    part(seat);
  }
  if (mine != 0) std::_Exit(0);
  for (const pid_t process : others) waitpid(process, nullptr, 0);
}

Seat take_seat(int rank, int ranks, const std::function<void(int& number)>& share) {
  sockaddr_un address;
  int number = getpid();
  std::vector<int> links;
  if (rank == 0) {
    const int listener = new_socket();
    const socklen_t size = abstract_address(number, address);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, ranks) != 0) {
      throw std::runtime_error("cannot listen for the other ranks");
    }
    share(number);
    links.resize(static_cast<size_t>(ranks) - 1, -1);
    for (int i = 1; i < ranks; ++i) {
      const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      int who = 0;
      if (fd < 0 || recv(fd, &who, sizeof who, MSG_WAITALL) != sizeof who) fail("accept");
      links[static_cast<size_t>(who) - 1] = fd;
    }
    close(listener);
  } else {
    share(number);
    links.push_back(new_socket());
    const socklen_t size = abstract_address(number, address);
    if (connect(links[0], reinterpret_cast<sockaddr*>(&address), size) != 0) fail("connect");
  }
  Seat seat(rank, ranks, std::move(links));
  if (rank != 0) seat.send(0, &rank, sizeof rank);
  return seat;
}

void Library::vanish() {
  raise(SIGKILL);
  std::_Exit(1);
}

bool serve(Seat& seat, Library& library, const std::string& name) {
  if (seat.leads()) {
    Words ready{"@ready", name};
    for (const std::string& form : library.forms()) ready.push_back(form);
    seat.say(ready);
  }
  for (std::string line; seat.next(line);) {
    if (const std::optional<FaultRequest> fault = parse_fault(line)) {
      if (!play_fault(seat, library, *fault)) return false;
      continue;
    }
    const std::optional<Request> request = parse_request(line);
    const Words answer = request ? measure(seat, library, *request) : Words{"@no", "no such command"};
    if (seat.leads()) seat.say(answer);
  }
  return true;
}

std::string with_setting(const std::string& name) {
  const char* const setting = std::getenv("DIST_PEER_SETTING");
  return setting != nullptr ? name + " " + setting : name;
}

int ranks_argument(int argc, char** argv, int at) {
  const int ranks = argc > at ? std::atoi(argv[at]) : 0;
  if (ranks >= 1 && ranks <= 64) return ranks;
  std::fprintf(stderr, "%s: how many ranks? A number from 1 to 64 is missing\n", argv[0]);
  std::exit(2);
}

}  // namespace bench::peers
