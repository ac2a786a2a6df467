// SPDX-License-Identifier: Apache-2.0
// core/net/shm: a peer that belongs to the job may still write anything into the shared memory, or end at any
// time.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/os/local_socket.hpp"
#include "core/net/shm/link.hpp"
#include "tests/skip.h"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/transport_suite.hpp"

namespace dist {
namespace {

using End = Transfer::End;
using shm::Frame;
using shm::FrameKind;

constexpr std::size_t kCredit = 1024;
constexpr uint64_t kSalt = 0x1234567890ABCDEF;

// A link, and the actions of its peer on the memory.
class Scene {
 public:
  explicit Scene(shm::Link::Connection connection = {})
      : link_(*memory_, kCredit, nobody_, nobody_), layout_(kCredit) {
    Descriptor own;
    Descriptor theirs;
    assert_true(connection.own.create(layout_.bytes(), &own).ok());
    assert_true(connection.theirs.create(layout_.bytes(), &theirs).ok());
    assert_true(peer_writes_.open(own, layout_.bytes()).ok());
    assert_true(peer_reads_.open(theirs, layout_.bytes()).ok());
    connection.own_salt = connection.their_salt = kSalt;
    link_.open(std::move(connection));
    into_ = shm::Region(peer_writes_.data(), layout_, kSalt);
    from_ = shm::Region(peer_reads_.data(), layout_, kSalt);
  }
  shm::Link& link() { return link_; }
  shm::Control& counters() { return from_.control(); }
  shm::SlotState state_of(std::size_t slot) { return into_.slot(slot).state.load(); }
  void put(const Frame& frame) {
    shm::Header& header = into_.header(static_cast<std::size_t>(at_ % layout_.ring));
    header.frame = frame;
    header.mark.store(into_.mark_of(at_));
    at_ += shm::kLine;
    if (frame.kind == FrameKind::kOffer && frame.slot < shm::kSlots)
      into_.slot(frame.slot).state.store(shm::SlotState::kOffered);
  }
  // Waiting transfers end as if the peer was lost, and so do later ones.
  void assert_ended() {
    std::byte byte{};
    Transfer receive;
    Transfer later;
    (void)link_.receive({1, {.number = 77}, &byte, 1}, receive);
    (void)link_.progress();
    assert_non_null(link_.violation());
    assert_true(receive.end() == End::kLost);
    (void)link_.send({1, {.number = 78}, &byte, 1}, later);
    assert_true(later.end() == End::kLost);
  }

 private:
  CountingMemory memory_;
  std::atomic<int> nobody_{0};
  shm::Link link_;
  shm::Layout layout_;
  SharedMemory peer_writes_;
  SharedMemory peer_reads_;
  shm::Region into_;
  shm::Region from_;
  uint64_t at_ = 0;
};

void frames_that_cannot_be_end_the_link(void**) {
  const std::vector<std::vector<Frame>> wrong = {
      {{.kind = static_cast<FrameKind>(99)}},
      {{.kind = FrameKind{}}},
      {{.kind = FrameKind::kMessage, .bytes = kCredit + 1, .place = 0}},
      {{.kind = FrameKind::kMessage, .bytes = UINT64_MAX, .place = 0}},
      {{.kind = FrameKind::kMessage, .bytes = 8, .place = 9}},
      {{.kind = FrameKind::kMessage, .bytes = 600, .place = 0},
       {.kind = FrameKind::kMessage, .bytes = 600, .place = 0}},
      {{.kind = FrameKind::kOffer, .slot = shm::kSlots, .bytes = 8}},
      {{.kind = FrameKind::kOffer, .slot = 1, .bytes = 8},
       {.kind = FrameKind::kOffer, .slot = 1, .bytes = 8}},
      {{.kind = FrameKind::kOffer, .slot = 1, .bytes = UINT64_MAX}},
      {{.kind = FrameKind::kChunk, .slot = 0, .bytes = 8}},
      {{.kind = FrameKind::kOffer, .slot = 2, .bytes = 8},
       {.kind = FrameKind::kChunk, .slot = 2, .bytes = 8}},
      {{.kind = FrameKind::kChunk, .slot = UINT32_MAX, .bytes = 8}},
      {{.kind = FrameKind::kDrop, .slot = 5}},
      {{.kind = FrameKind::kDrop, .slot = UINT32_MAX}},
  };
  for (const std::vector<Frame>& frames : wrong) {
    Scene scene;
    for (const Frame& each : frames) scene.put(each);
    scene.assert_ended();
  }
}

void chunks_arrive_only_as_agreed(void**) {
  const Frame wrong[] = {
      {.kind = FrameKind::kChunk, .slot = 3, .bytes = 0, .place = 0},
      {.kind = FrameKind::kChunk, .slot = 3, .bytes = 65, .place = 0},
      {.kind = FrameKind::kChunk, .slot = 3, .bytes = 8, .place = 8},
      {.kind = FrameKind::kChunk, .slot = 3, .bytes = shm::Layout::kMostChunk + 1, .place = 0},
  };
  for (const Frame& each : wrong) {
    Scene scene;
    std::vector<std::byte> data(64);
    Transfer receive;
    scene.put({.kind = FrameKind::kOffer, .slot = 3, .bytes = data.size()});
    (void)scene.link().receive({1, {}, data.data(), data.size()}, receive);
    assert_false(receive.over());
    scene.put(each);
    scene.assert_ended();
    assert_true(receive.end() == End::kLost);
  }
}

void counters_that_cannot_be_end_the_link(void**) {
  const std::vector<std::byte> data(kCredit);
  {
    Scene scene;
    scene.counters().returned.store(UINT64_MAX);
    Transfer sends[2];
    for (Transfer& each : sends)
      (void)scene.link().send({1, {}, const_cast<std::byte*>(data.data()), kCredit}, each);
    scene.assert_ended();
  }
  Scene scene;
  scene.counters().read.store(uint64_t{1} << 60);
  std::vector<std::unique_ptr<Transfer>> sends;
  // Credit is returned, so the ring becomes full.
  for (uint64_t i = 1; i <= 1000 && scene.link().violation() == nullptr; ++i) {
    sends.push_back(std::make_unique<Transfer>());
    (void)scene.link().send({1, {}, const_cast<std::byte*>(data.data()), kCredit}, *sends.back());
    scene.counters().returned.store(i * kCredit);
  }
  scene.assert_ended();
  for (const auto& each : sends) assert_true(each->over());
}

// The link reads from this process, which has the id of a peer that has ended.
void data_of_another_process_are_not_received(void**) {
  for (const bool lives : {true, false}) {
    const pid_t peer = fork();
    if (peer == 0) {
      for (;;) pause();
    }
    shm::Link::Connection connection;
    connection.process = getpid();
    connection.reads = true;
    connection.ends = watch_process(peer);
    if (!connection.ends.is_open()) {
      kill(peer, SIGKILL);
      skip_because("the system cannot watch a process");
    }
    if (!lives) kill(peer, SIGKILL);
    if (!lives) assert_int_equal(waitpid(peer, nullptr, 0), peer);
    {
      Scene scene(std::move(connection));
      std::vector<std::byte> sent(2000, std::byte{7});
      std::vector<std::byte> got(sent.size());
      scene.put({.kind = FrameKind::kOffer,
                 .slot = 3,
                 .bytes = sent.size(),
                 .place = reinterpret_cast<std::uintptr_t>(sent.data())});
      Transfer receive;
      (void)scene.link().receive({1, {}, got.data(), got.size()}, receive);
      assert_true(receive.end() == (lives ? End::kDone : End::kUnderWay));
      assert_true(scene.state_of(3) == (lives ? shm::SlotState::kDone : shm::SlotState::kGranted));
      if (lives) assert_memory_equal(sent.data(), got.data(), sent.size());
      (void)scene.link().close();
    }
    if (!lives) continue;
    kill(peer, SIGKILL);
    assert_int_equal(waitpid(peer, nullptr, 0), peer);
  }
}

void workers_on_one_cpu_know_it(void**) {
  Scene scene;
  shm::Control& peer = scene.counters();
  assert_false(scene.link().shares_cpu(0));
  peer.cpu = 3 + 1;
  assert_false(scene.link().shares_cpu(2));
  assert_true(scene.link().shares_cpu(3));
  peer.cpu = UINT32_MAX;
  assert_false(scene.link().shares_cpu(3));
  peer.cpu = 0;
  assert_false(scene.link().shares_cpu(-1));
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(frames_that_cannot_be_end_the_link),
      cmocka_unit_test(chunks_arrive_only_as_agreed),
      cmocka_unit_test(counters_that_cannot_be_end_the_link),
      cmocka_unit_test(data_of_another_process_are_not_received),
      cmocka_unit_test(workers_on_one_cpu_know_it),
  };
  return cmocka_run_group_tests_name("shm_link", tests, nullptr, nullptr);
}
