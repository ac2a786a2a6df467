// SPDX-License-Identifier: Apache-2.0
#include "core/net/mpi/job.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>

#include "core/base/os/clock.hpp"
#include "core/base/os/fork.hpp"
#include "core/base/os/thread.hpp"

namespace dist::mpi_link {
namespace {

constexpr int kTag = 1;

// How long the thread polls without a pause after the latest frame, its first pause, and its longest pauses:
// with connections, and without.
constexpr int64_t kBusyNs = 100'000;
constexpr int64_t kLeastPauseNs = 20'000;
constexpr int64_t kMostPauseNs = 1'000'000;
constexpr int64_t kMostIdlePauseNs = 20'000'000;

constexpr int kMostAtOnce = 64;                          // frames that are received in one turn
constexpr std::size_t kMostOut = std::size_t{16} << 20;  // bytes that are on their way to a rank
constexpr int64_t kDefaultLeaseNs = 10'000'000'000;
constexpr std::chrono::seconds kMostStart(600);

constexpr const char* level_name(int level) noexcept {
  return level == MPI_THREAD_SINGLE     ? "MPI_THREAD_SINGLE"
         : level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                        : "MPI_THREAD_SERIALIZED";
}

// Describes an MPI library in this process that is not the one for which this module was built. Both are
// called MPI, and the program's symbols can replace those that the module needs.
std::string other_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  if (std::strncmp(text, MPI_LIBRARY, sizeof MPI_LIBRARY - 1) == 0) return "";
  text[std::min<std::size_t>(std::strcspn(text, "\n"), 60)] = '\0';
  return "this process uses the MPI library \"" + std::string(text) +
         "\", but this module is built for " MPI_LIBRARY;
}

// Describes why the host's initialization of MPI cannot be used.
std::string unusable_initialization() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return "";
  return "the host has initialized MPI with " + std::string(level_name(level)) +
         ", but libdist uses MPI on a thread of its own. Initialize it with MPI_THREAD_MULTIPLE, or let "
         "libdist do so";
}

// Describes a launcher of another MPI, whose processes this MPI does not connect.
std::string other_launcher() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr || std::strtol(text, nullptr, 10) <= 1) continue;
    return std::string(name) + " is " + std::string(text, ::strnlen(text, 16)) +
           ", but the MPI job of this process (" + MPI_LIBRARY +
           ") has only one rank. Start it with the launcher of " MPI_LIBRARY
           " (srun: --mpi=pmix for Open MPI, "
           "--mpi=pmi2 for MPICH), or set DIST_TRANSPORT to the module of the launcher's MPI: openmpi or "
           "mpich";
  }
  return "";
}

}  // namespace

// ---- Start ----

Job::Job(bool initializes) noexcept
    : initializes_(initializes), process_(process_id()), lease_ns_(kDefaultLeaseNs) {}

std::string Job::use(Job** out) {
  static std::mutex creating;
  static Job* the_job = nullptr;
  const std::scoped_lock lock(creating);
  if (the_job == nullptr) {
    std::string why = other_library();
    if (!why.empty()) return why;
    int initialized = 0;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return "MPI has already been finalized in this process";
    MPI_Initialized(&initialized);
    if (initialized != 0) why = unusable_initialization();
    if (!why.empty()) return why;
    std::unique_ptr<Job> job(new Job(initialized == 0));
    const AsyncSignalsBlocked blocked;
    std::thread([serving = job.get()] { serving->serve(); }).detach();
    the_job = job.release();
  }
  if (the_job->process_ != process_id()) return "MPI cannot be used in a forked child";
  *out = the_job;
  const std::scoped_lock state(the_job->mutex_);
  if (the_job->state_ == State::kFailed) return the_job->why_;
  return the_job->state_ >= State::kEnds ? "MPI has already been finalized in this process" : "";
}

// Runs on the job's thread, while nothing else in this module uses MPI.
std::string Job::start() {
  if (initializes_) {
    int level = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
      return "MPI cannot be initialized";
    ::on_exit(exiting, this);
    if (level != MPI_THREAD_MULTIPLE) {
      return "this MPI library offers only " + std::string(level_name(level)) +
             ", but MPI_THREAD_MULTIPLE is required";
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (size_ == 1) {
    std::string why = other_launcher();
    if (!why.empty()) return why;
  }
  peers_ = std::vector<Peer>(static_cast<std::size_t>(size_));
  LeavingUser& user = *this;
  leaving_.emplace(user, rank_, size_);
  create_communicator();
  if (comm_ == MPI_COMM_NULL) return "MPI cannot create a communicator";
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalizing, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
  return "";
}

// A communicator of its own keeps the host's messages apart from those of this module. MPI_Comm_create_group
// would not be a collective, but with Open MPI its messages could be taken by a receive of the host that
// accepts any message.
void Job::create_communicator() {
  if (MPI_Comm_dup(MPI_COMM_WORLD, &comm_) != MPI_SUCCESS) comm_ = MPI_COMM_NULL;
  if (comm_ == MPI_COMM_NULL) return;
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  std::random_device random;
  id_ = (uint64_t{random()} << 32) | random();
  MPI_Bcast(&id_, 1, MPI_UINT64_T, 0, comm_);
  MPI_Comm machine;
  int on_machine = 0;
  MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &on_machine);
  MPI_Comm_free(&machine);
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  // If all ranks are on one machine (every rank obtains the same result), its name need not resolve to an
  // address.
  int together = on_machine == size_ ? 1 : 0;
  MPI_Bcast(&together, 1, MPI_INT, 0, comm_);
  host_ = together == 1 ? "127.0.0.1" : name;
}

std::string Job::await_start() noexcept {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kMostStart, [&] { return state_ != State::kStarting; })) {
    return "MPI has not started within 600 s. Every process of the MPI job must initialize MPI, or create a "
           "strategy";
  }
  return state_ == State::kFailed ? why_ : "";
}

void Job::open(int64_t lease_ns) noexcept {
  const std::scoped_lock lock(mutex_);
  lease_ns_ = lease_ns;
  ++strategies_;
  meets_ = false;
  wake();
}

void Job::close() noexcept {
  const std::scoped_lock lock(mutex_);
  if (state_ == State::kRuns) progress();  // takes the messages that connections have ended
  --strategies_;
}

void Job::meet(dist_link_meeting& meeting, std::string* out_why) {
  const std::scoped_lock lock(mutex_);
  meeting.rank = -1;
  if (state_ == State::kStarting) return;
  if (state_ != State::kRuns)
    return void(*out_why = state_ == State::kFailed ? why_ : "MPI has been finalized");
  if (!std::exchange(meets_, true)) wake();
  meeting.rank = rank_;
  meeting.size = size_;
  std::snprintf(meeting.host, sizeof meeting.host, "%s", host_.c_str());
  if (meeting.round == 0) meeting.round = ++rounds_;
  if (rank_ != 0) {
    texts_.erase(texts_.begin(), texts_.lower_bound(meeting.round));
    const auto text = texts_.find(meeting.round);
    meeting.has_text = text == texts_.end() ? 0 : 1;
    if (meeting.has_text == 1) std::snprintf(meeting.text, sizeof meeting.text, "%s", text->second.c_str());
    return;
  }
  if (meeting.has_text == 0) return;
  const std::size_t bytes = ::strnlen(meeting.text, sizeof meeting.text - 1);
  for (int r = 1; r < size_; ++r) {
    FrameRef frame = make_frame(bytes);
    if (frame == nullptr) throw std::bad_alloc();
    frame->head.kind = Kind::kText;
    frame->head.value = static_cast<uint64_t>(meeting.round);
    std::memcpy(frame->data(), meeting.text, bytes);
    send_locked(r, std::move(frame));
  }
}

// ---- The thread ----

void Job::serve() noexcept {
  name_this_thread("dist-mpi");
  std::string why;
  try {
    why = start();
  } catch (const std::exception&) {
    why = "out of memory";
  }
  std::unique_lock lock(mutex_);
  state_ = why.empty() ? State::kRuns : State::kFailed;
  why_ = std::move(why);
  changed_.notify_all();
  int64_t busy_until = 0;
  int64_t pause = kLeastPauseNs;
  for (;;) {
    bool busy = polls() && progress();
    busy = run_posted(lock) || busy;
    busy = leave(lock) || busy || std::exchange(woken_, false);
    const int64_t now = steady_now_ns();
    if (busy) {
      busy_until = now + kBusyNs;
      pause = kLeastPauseNs;
    }
    if (polls() && now < busy_until) {
      lock.unlock();
      yield_this_thread();
      lock.lock();
      continue;
    }
    if (busy) continue;
    sleeps_ = true;
    if (polls()) {
      wake_.wait_for(lock, std::chrono::nanoseconds(pause), [&] { return woken_; });
    } else {
      wake_.wait(lock, [&] { return woken_; });
    }
    sleeps_ = false;
    pause = std::min(2 * pause, connections_.empty() ? kMostIdlePauseNs : kMostPauseNs);
  }
}

void Job::wake() noexcept {
  woken_ = true;
  if (sleeps_) wake_.notify_one();
}

bool Job::run_posted(std::unique_lock<std::mutex>& lock) noexcept {
  if (first_posted_ == nullptr) return false;
  // Connections that are posted from here on run after the next frames.
  Posted* each = std::exchange(first_posted_, nullptr);
  end_of_posted_ = &first_posted_;
  while (each != nullptr) {
    Posted& now = *each;
    each = std::exchange(now.next_, nullptr);
    now.posted_ = false;
    now.runs_ = true;
    lock.unlock();
    now.run();
    lock.lock();
    now.runs_ = false;
    changed_.notify_all();
  }
  return true;
}

bool Job::progress() noexcept {
  bool moved = receive();
  for (int r = 0; num_pending_ != 0 && r < size_; ++r) {
    moved = complete(r, peers_[static_cast<std::size_t>(r)]) || moved;
  }
  return moved;
}

// Memory for a frame is allocated when its size is known. If that fails, MPI keeps the frame.
bool Job::receive() noexcept {
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (arrived_ == MPI_MESSAGE_NULL) {
      int there = 0;
      const int result = MPI_Improbe(MPI_ANY_SOURCE, kTag, comm_, &there, &arrived_, &arrival_);
      if (result != MPI_SUCCESS || there == 0) {
        arrived_ = MPI_MESSAGE_NULL;
        return i > 0;
      }
    }
    int bytes = 0;
    MPI_Get_count(&arrival_, MPI_BYTE, &bytes);
    const std::size_t size =
        std::max(static_cast<std::size_t>(std::max(bytes, 0)), sizeof(Head)) - sizeof(Head);
    const int from = arrival_.MPI_SOURCE;
    if (size > kMostData) {  // not sent by this module, because it could not receive it
      arrived_ = MPI_MESSAGE_NULL;
      lose(from);
      continue;
    }
    FrameRef frame = make_frame(size);
    if (frame == nullptr) return i > 0;
    Peer& peer = peers_[static_cast<std::size_t>(from)];
    if (MPI_Imrecv(&frame->head, bytes, MPI_BYTE, &arrived_, &frame->request) != MPI_SUCCESS) {
      arrived_ = MPI_MESSAGE_NULL;
      lose(from);
      continue;
    }
    arrived_ = MPI_MESSAGE_NULL;
    peer.receives.push(std::move(frame));
    ++num_pending_;
    complete(from, peer);
  }
  return true;
}

// Handles the frames whose transfers are complete. After an error, the others stay in their lists, because
// MPI may still use them.
bool Job::complete(int rank, Peer& peer) noexcept {
  bool moved = false;
  const auto is_done = [&](Frame& frame) {
    int done = 0;
    if (MPI_Test(&frame.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) lose(rank);
    return done != 0 && !peer.lost;
  };
  while (!peer.lost && peer.receives.front() != nullptr && is_done(*peer.receives.front())) {
    --num_pending_;
    moved = true;
    FrameRef frame = peer.receives.pop();
    // The transfer has failed, although MPI reports no error.
    if (frame->head.kind == Kind::kNone || frame->head.bytes != frame->bytes) return lose(rank), true;
    take(rank, std::move(frame));
  }
  while (!peer.lost && peer.sends.front() != nullptr && is_done(*peer.sends.front())) {
    --num_pending_;
    moved = true;
    const FrameRef sent = peer.sends.pop();
    peer.bytes_out -= sent->capacity;
  }
  if (!moved || peer.bytes_out >= kMostOut) return moved;
  for (const auto& [number, each] : connections_) {
    if (each->waits_ && each->peer() == rank) post_locked(*each);
  }
  return moved;
}

void Job::take(int from, FrameRef frame) noexcept {
  const Head head = frame->head;
  switch (head.kind) {
    case Kind::kData:
    case Kind::kCredit:
    case Kind::kEnd: {
      const auto found = connections_.find(head.to);
      if (found != connections_.end()) {
        found->second->take(std::move(frame));
        return post_locked(*found->second);
      }
      // The connection has been destroyed, which the other end may not know.
      if (head.kind == Kind::kEnd) return;
      FrameRef end = make_frame(0);
      if (end == nullptr) return;
      end->head.to = head.from;
      end->head.kind = Kind::kEnd;
      return send_locked(from, std::move(end));
    }
    case Kind::kText: return take_text(*frame);
    default: leaving_->take(from, head);
  }
}

void Job::take_text(Frame& frame) noexcept {
  const auto round = static_cast<int64_t>(frame.head.value);
  if (round < rounds_) return;
  try {
    texts_[round].assign(reinterpret_cast<const char*>(frame.data()), frame.bytes);
  } catch (const std::bad_alloc&) {
    // The meeting fails at its deadline.
  }
}

// ---- Connections ----

uint64_t Job::add(Posted& connection) {
  const std::scoped_lock lock(mutex_);
  connections_.emplace(++numbers_, &connection);
  return numbers_;
}

void Job::post(Posted& connection) noexcept {
  const std::scoped_lock lock(mutex_);
  post_locked(connection);
}

void Job::post_locked(Posted& connection) noexcept {
  connection.waits_ = false;
  if (!connection.posted_) {
    connection.posted_ = true;
    *end_of_posted_ = &connection;
    end_of_posted_ = &connection.next_;
  }
  wake();
}

bool Job::room(Posted& connection) noexcept {
  const std::scoped_lock lock(mutex_);
  const Peer& peer = peers_[static_cast<std::size_t>(connection.peer())];
  const bool has = peer.bytes_out < kMostOut || peer.lost || state_ != State::kRuns;
  connection.waits_ = !has;
  return has;
}

void Job::send(int rank, FrameRef frame) noexcept {
  const std::scoped_lock lock(mutex_);
  send_locked(rank, std::move(frame));
}

void Job::send(int rank, Kind kind, uint64_t value) noexcept {
  FrameRef frame = make_frame(0);
  if (frame == nullptr) return;
  frame->head.kind = kind;
  frame->head.value = value;
  send_locked(rank, std::move(frame));
}

void Job::send_locked(int rank, FrameRef frame) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (state_ != State::kRuns || peer.lost) return;
  frame->head.bytes = static_cast<uint32_t>(frame->bytes);
  const int bytes = static_cast<int>(sizeof(Head) + frame->bytes);
  int done = 0;
  if (MPI_Isend(&frame->head, bytes, MPI_BYTE, rank, kTag, comm_, &frame->request) != MPI_SUCCESS) {
    return lose(rank);
  }
  wake();
  if (peer.sends.front() == nullptr) {
    if (MPI_Test(&frame->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) lose(rank);
    if (done != 0) return;
  }
  peer.bytes_out += frame->capacity;
  ++num_pending_;
  peer.sends.push(std::move(frame));
}

// ---- Ends ----

void Job::lose(int rank) noexcept {
  peers_[static_cast<std::size_t>(rank)].lost = true;
  for (const auto& [number, each] : connections_) {
    if (each->peer() != rank) continue;
    each->lost();
    post_locked(*each);
  }
}

// MPI must not be used after this.
void Job::end() noexcept {
  for (int r = 0; r < size_; ++r) lose(r);
  state_ = State::kEnds;
  wake();
}

int Job::finalizing(MPI_Comm, int, void* job, void*) noexcept {
  Job& self = *static_cast<Job*>(job);
  const std::scoped_lock lock(self.mutex_);
  if (self.state_ == State::kRuns) self.end();
  return MPI_SUCCESS;
}

void Job::exiting(int status, void* job) noexcept {
  Job* const self = static_cast<Job*>(job);
  if (self->process_ != process_id()) return;
  std::unique_lock lock(self->mutex_);
  if (self->state_ != State::kRuns) return;
  self->leaving_->begin(status != 0);
  self->next_tick_ns_ = steady_now_ns() + Leaving::tick_ns(self->lease_ns_);
  self->wake();
  self->changed_.wait(lock, [&] { return self->state_ >= State::kEnds; });
  // A rank may have died since the ranks decided to finalize MPI.
  self->changed_.wait_for(lock, std::chrono::nanoseconds(self->lease_ns_),
                          [&] { return self->state_ == State::kEnded; });
}

// Called regularly. Returns whether this rank has left now.
bool Job::leave(std::unique_lock<std::mutex>& lock) noexcept {
  if (state_ != State::kRuns || next_tick_ns_ == 0) return false;
  const int64_t now = steady_now_ns();
  if (now >= next_tick_ns_) {
    leaving_->tick();
    // If the host did not destroy its strategies, their peers must not wait for this process, because it
    // waits for all ranks. The data that it has sent had one tick to arrive.
    for (const auto& [number, each] : connections_) {
      each->lost();
      post_locked(*each);
    }
    next_tick_ns_ = now + Leaving::tick_ns(lease_ns_);
  }
  if (leaving_->decision() == Leaving::Decision::kNone) return false;
  const bool finalizes = leaving_->decision() == Leaving::Decision::kFinalize;
  end();
  changed_.notify_all();
  lock.unlock();
  if (finalizes) MPI_Finalize();
  lock.lock();
  state_ = State::kEnded;
  changed_.notify_all();
  return true;
}

}  // namespace dist::mpi_link
