// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/names.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/os/thread.hpp"

namespace dist::grpc_link {
namespace {

// A lookup that takes longer than this is reported.
constexpr int64_t kUsualNs = 1'000'000'000;

std::atomic<Names::LookUp> look_up_instead{nullptr};

}  // namespace

// Notifies one Names object. Its outstanding lookups hold references to it.
struct Names::Asker {
  void notify() noexcept {
    const std::scoped_lock lock(mutex);
    if (answered) answered();
  }
  std::mutex mutex;
  std::function<void()> answered;  // empty: the object has been destroyed
};

// The state of a name, shared by all Names objects that ask for it and by its outstanding lookup.
struct Names::Name {
  explicit Name(std::string of) : host(std::move(of)) {}

  const std::string host;
  std::mutex mutex;
  bool outstanding = false;
  int64_t begun_ns = 0;  // when the latest lookup began; 0: there was none
  HostAddresses latest;
  std::vector<std::shared_ptr<Asker>> askers;  // those that the outstanding lookup must notify
};

Names::Names(std::function<void()> answered) : asker_(std::make_shared<Asker>()) {
  asker_->answered = std::move(answered);
}

Names::~Names() {
  const std::scoped_lock lock(asker_->mutex);
  asker_->answered = nullptr;
}

// Returns the process's only object for this name.
std::shared_ptr<Names::Name> Names::find(const std::string& host) {
  struct Table {
    std::mutex mutex;
    std::unordered_map<std::string, std::weak_ptr<Name>> names;
  };
  // Never destroyed, because networks may outlive main().
  static auto* const table = new Table;
  const std::scoped_lock lock(table->mutex);
  std::erase_if(table->names, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<Name>& known = table->names[host];
  std::shared_ptr<Name> name = known.lock();
  if (name == nullptr) known = name = std::make_shared<Name>(host);
  return name;
}

HostAddresses Names::ask(const std::string& host) {
  if (is_ip_address(host)) return {{host}, ""};
  std::shared_ptr<Name> name;
  {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Name>& known = wanted_[host];
    if (known == nullptr) known = find(host);
    name = known;
  }
  const std::scoped_lock lock(name->mutex);
  const bool due = name->begun_ns == 0 || steady_now_ns() - name->begun_ns >= kAgainNs;
  if (!name->outstanding && due) begin(name);
  const auto asked = std::find(name->askers.begin(), name->askers.end(), asker_);
  if (name->outstanding && asked == name->askers.end()) name->askers.push_back(asker_);
  HostAddresses answer = name->latest;
  if (answer.list.empty() && answer.why.empty() && steady_now_ns() - name->begun_ns >= kUsualNs)
    answer.why = "the system has not answered yet";
  return answer;
}

bool Names::moved(const std::string& host, const std::vector<std::string>& known) {
  const HostAddresses now = ask(host);
  return !now.list.empty() && sorted(now.list) != known;
}

// The name's lock must be held.
void Names::begin(const std::shared_ptr<Name>& name) {
  name->begun_ns = steady_now_ns();
  auto given = std::make_unique<std::shared_ptr<Name>>(name);
  Thread thread;
  const AsyncSignalsBlocked blocked;
  if (!thread.start(lookup_main, given.get()).ok()) {
    if (name->latest.list.empty()) name->latest.why = "the system cannot create another thread";
    return;
  }
  thread.name("dist-names");
  thread.detach();
  (void)given.release();
  name->outstanding = true;
}

void* Names::lookup_main(void* given) {
  const std::unique_ptr<std::shared_ptr<Name>> own(static_cast<std::shared_ptr<Name>*>(given));
  Name& name = **own;
  HostAddresses answer;
  try {
    const LookUp instead = look_up_instead;
    answer = instead != nullptr ? instead(name.host) : look_up(name.host);
  } catch (const std::bad_alloc&) {
    answer.list.clear();
  }
  std::vector<std::shared_ptr<Asker>> askers;
  {
    const std::scoped_lock lock(name.mutex);
    name.outstanding = false;
    if (!answer.list.empty() || name.latest.list.empty()) name.latest = std::move(answer);
    if (name.latest.list.empty() && name.latest.why.empty()) name.latest.why = "out of memory";
    askers.swap(name.askers);
  }
  for (const auto& each : askers) each->notify();
  return nullptr;
}

void Names::look_up_with(LookUp instead) noexcept { look_up_instead = instead; }

std::vector<std::string> sorted(std::vector<std::string> list) {
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace dist::grpc_link
