// SPDX-License-Identifier: Apache-2.0
// The handshake of a worker link: decides which peers are admitted. hello.hpp defines the messages.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/status.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/endpoint.hpp"

namespace dist::grpc_link {
namespace {

constexpr Identity kNobody{};

std::string number(int64_t value) { return std::to_string(value); }

}  // namespace

// ---- The client's side ----

LinkRef Endpoint::make_client(Peer& peer, Purpose purpose, std::string* why) {
  const std::string& address = config_.address(peer.number);
  const HostAddresses found = names_.ask(host_of(address));
  if (found.list.empty()) {
    if (!found.why.empty()) *why = "its host name does not resolve: " + found.why;
    return nullptr;
  }
  Route& route = purpose == Purpose::kControl ? control_route_ : peer.route;
  std::vector<std::string> hosts = sorted(found.list);
  if (route.channel == nullptr || route.hosts != hosts) {
    retire(std::move(route.channel));
    route = {make_channel(config_, address, found.list), std::move(hosts)};
  }
  if (!begin_link()) return nullptr;
  auto link = std::make_shared<ClientLink>(*this, route.channel);
  link->host = host_of(address);
  link->hosts = route.hosts;
  link->purpose = purpose;
  link->peer = peer.number;
  link->stage = Link::Stage::kAnswer;
  link->born_ns = steady_now_ns();
  link->prepare();
  keep_unproven(link);
  const std::scoped_lock lock(members_);
  say_hello(*link, peer.known ? peer.incarnation : kNobody);
  return link;
}

void Endpoint::say_hello(Link& link, const Identity& receiver) noexcept {
  Hello hello;
  copy_text(hello.version, config_.version.c_str());
  hello.purpose = link.purpose;
  hello.forms = config_.forms ? 1 : 0;
  hello.came_from = config_.came_from.generation;
  hello.job = config_.came_from.job;
  if (!config_.replicas.empty()) hello.replicas = config_.replicas[static_cast<std::size_t>(config_.me)];
  hello.from = config_.me;
  hello.to = link.peer;
  hello.num_workers = num_workers();
  hello.credit = config_.credit;
  copy_text(hello.transport, config_.transport.c_str());
  hello.lease_ns = static_cast<uint64_t>(config_.lease_ns);
  hello.cluster = cluster_;
  hello.sender = incarnation_;
  hello.receiver = receiver;
  (void)random_bytes(hello.nonce.data(), hello.nonce.size());
  hello.write(link.hello);
  put(link, hello);
}

std::string Endpoint::took_answer(const LinkRef& link, std::span<const std::byte> message) noexcept {
  if (link->ending()) return "";
  if (config_.tls()) {
    const Fault fault = fault_of(static_cast<ClientLink&>(*link).server_certificate(), link->peer);
    if (fault) return reject_server(*link, fault.text());
  }
  Answer answer;
  bool is_of_job = false;
  const std::string why =
      check_answer(config_.secret, config_.version, link->hello, message, &answer, &is_of_job);
  if (!why.empty()) {
    link->refused = is_of_job;
    return why;
  }
  std::copy(message.begin(), message.end(), link->answer);
  Peer& peer = at(link->peer);
  {
    const std::scoped_lock lock(members_);
    if (!know(peer, answer.receiver)) {
      link->refused = true;
      return "another process of this worker answered than the one that has joined";
    }
    if (link->purpose == Purpose::kControl) {
      answered_ns_ = steady_now_ns();
      nobody_since_ns_ = 0;
    }
  }
  const Digest proof = prove(Prover::kClient, config_.secret, link->hello, link->answer);
  link->put_raw(proof.data(), proof.size());
  link->stage = Link::Stage::kAdmission;
  // From here on the peer may have accepted the link, so no second link can replace it.
  if (!carries(*link)) link->open(link->purpose == Purpose::kControl ? peer.control_queue : peer.out_queue);
  link->flush();
  return "";
}

std::string Endpoint::took_admission(const LinkRef& link, std::span<const std::byte> message) noexcept {
  Admission admission;
  Peer& peer = at(link->peer);
  if (message.size() != Admission::kBytes || !admission.read(message.data())) return "an invalid admission";
  if (admission.answer != Admission::Answer::kWelcome) {
    // kLater is no final refusal: a later instance of the peer may accept.
    link->refused = admission.answer == Admission::Answer::kNo;
    return admission.text;
  }
  proven(*link);
  {
    const std::scoped_lock lock(members_);
    link->stage = carries(*link) ? Link::Stage::kMeeting : Link::Stage::kOpen;
    if (peer.life == Life::kUnknown) peer.life = Life::kHere;
    if (peer.life == Life::kHere && !peer.leaves) peer.why.clear();
    reached(peer);
    if (Answer answer; link->purpose == Purpose::kControl && answer.read(link->answer)) {
      met_ = true;
      job_ = answer.job;
    }
  }
  if (link->purpose == Purpose::kControl) {
    peer.heard_ns = steady_now_ns();
    begin_out(peer);
    leave_if_done();
  }
  if (carries(*link)) return begin_meeting(link, 0);
  link->flush();
  return "";
}

// ---- The server's side ----

// Returns a reason to reject a worker's certificate, if there is one. gRPC has checked it for the direction
// of this connection, but also accepts names that are neither DNS nor IP names. Both sides check both
// directions, so that workers join only if each can connect to the other.
Fault Endpoint::fault_of(const std::string& certificate, int worker) const {
  return why_not_of_worker(certificate, config_.ca, host_of(config_.address(worker)),
                           {"on worker " + number(worker), "on worker " + number(config_.me)});
}

// Returns what is wrong with a hello, before any proof. Empty if it is acceptable.
std::string Endpoint::why_not(const Link& link, const Hello& hello) const {
  // Example: "worker 1 has 3 workers, but worker 0 has 2. "
  const auto differ = [&](const char* verb, const std::string& there, const std::string& here) {
    return "worker " + number(hello.from) + verb + there + ", but worker " + number(config_.me) + verb +
           here + ". ";
  };
  constexpr char kSameVersion[] = "Run the same version of libdist on all workers.";
  if (hello.protocol != kProtocol) {
    return differ(" uses ", "protocol " + number(hello.protocol) + " (libdist " + hello.version + ")",
                  "protocol " + number(kProtocol) + " (libdist " + config_.version + ")") +
           kSameVersion;
  }
  if (hello.purpose == Purpose::kCalls) return "this is a worker, not a server for calls";
  if (config_.version != hello.version) {
    return differ(" uses libdist ", hello.version, config_.version) + kSameVersion;
  }
  if (hello.num_workers != num_workers()) {
    return differ(" has a cluster of ", CountText(hello.num_workers, "worker").text,
                  CountText(num_workers(), "worker").text) +
           "Give all workers the same cluster.";
  }
  if (hello.cluster != cluster_)
    return "the cluster at worker " + number(hello.from) + " differs from the one at worker " +
           number(config_.me) + ". Give all workers the same addresses and options.";
  if (hello.to != config_.me)
    return "it expects worker " + number(hello.to) + ", but this is worker " + number(config_.me);
  if (hello.from < 0 || hello.from >= num_workers() || hello.from == config_.me) {
    return "it claims to be worker " + number(hello.from);
  }
  if (config_.transport != hello.transport) {
    return differ(" uses the transport ", hello.transport, config_.transport) +
           "Set the same DIST_TRANSPORT for all workers.";
  }
  if (hello.credit != config_.credit) {
    return differ(" has a credit of ", number(static_cast<int64_t>(hello.credit)) + " bytes",
                  number(static_cast<int64_t>(config_.credit)) + " bytes") +
           "Give all workers the same credit.";
  }
  if (hello.lease_ns != static_cast<uint64_t>(config_.lease_ns)) {
    return differ(" has a lease of ", DurationText(static_cast<int64_t>(hello.lease_ns)).text,
                  DurationText(config_.lease_ns).text) +
           "Set the same DIST_LEASE_SECONDS for all workers.";
  }
  if (hello.purpose == Purpose::kControl && !hub()) return "only worker 0 accepts control connections";
  if (config_.tls()) {
    if (const Fault fault = fault_of(link.certificate, hello.from))
      return "the certificate of worker " + number(hello.from) + " " + fault.text();
  }
  return "";
}

std::string Endpoint::took_hello(const LinkRef& link, std::span<const std::byte> message) noexcept {
  if (link->refused) return "";
  Hello hello;
  if (message.size() != Hello::kBytes || !hello.read(message.data())) return "an invalid hello";
  Answer answer;
  copy_text(answer.version, config_.version.c_str());
  const std::string refusal = why_not(*link, hello);
  if (!refusal.empty()) {
    complete_refusal(config_.secret, message, refusal, !ends(), &answer);
    link->refused = true;
    note_stranger(hello.from, "was refused: " + refusal);
    put(*link, answer);
    link->end_after_writes(refusal);
    return "";
  }
  {
    const std::scoped_lock lock(members_);
    answer.job = job_;
  }
  if (!write_welcome(incarnation_, config_.secret, message, link->hello, &answer, link->answer))
    return "the system provides no random numbers";
  link->put_raw(link->answer, Answer::kBytes);
  link->stage = Link::Stage::kProof;
  link->flush();
  return "";
}

std::string Endpoint::took_proof(const LinkRef& link, std::span<const std::byte> message) noexcept {
  if (link->refused) return "";
  Hello hello;
  if (!hello.read(link->hello)) return "an invalid hello";
  if (Admission admission; is_rejection(message, &admission)) {
    link->refused = true;
    note_stranger(hello.from,
                  "rejects the certificate of worker " + std::to_string(me()) + ", which " + admission.text);
    return "the client rejects this worker";
  }
  const Digest wanted = prove(Prover::kClient, config_.secret, link->hello, link->answer);
  const bool proof = message.size() == kProofBytes && equal(message.data(), wanted.data(), wanted.size());
  Admission admission;
  if (proof) incoming_.proven(link->connection);
  const std::string refusal =
      proof ? admit(link, hello, &admission.answer)
            : "its DIST_JOB_SECRET differs from this job's secret. Set the same secret for all workers.";
  if (refusal.empty()) return "";
  copy_text(admission.text, refusal.c_str());
  link->refused = true;
  note_stranger(hello.from, "was refused: " + refusal);
  put(*link, admission);
  link->end_after_writes(refusal);
  return "";
}

// If a caller waits for that worker, its error message names what claimed to be it.
void Endpoint::note_stranger(int claimed, const std::string& what) noexcept {
  if (claimed < 0 || claimed >= num_workers() || claimed == config_.me) return;
  const std::scoped_lock lock(members_);
  Peer& peer = at(claimed);
  if (peer.life == Life::kUnknown)
    peer.why = peer.name + " has not joined: a process that claims to be it " + what;
}

void Endpoint::stranger_over(Link& link) noexcept {
  Hello hello;
  if (link.stage != Link::Stage::kProof || link.refused || !hello.read(link.hello)) return;
  // The stranger has received this worker's proof but has sent none.
  note_stranger(hello.from, "did not prove that it knows this job's secret");
}

// Returns why a peer that claims to belong to the job can take part neither in this generation nor in a later
// one. Empty if it can.
std::string Endpoint::not_in_this_generation(const Hello& hello) noexcept {
  const std::string worker = "worker " + number(hello.from);
  const bool control = hello.purpose == Purpose::kControl;
  if (hello.forms == 0 && config_.forms) {
    return "the job has continued without " + worker + ". Call `dist_strategy_reform()` to rejoin it."_m;
  }
  // A worker that has started to form the next generation retries until worker 0 has started, too.
  if (hello.forms > (config_.forms || control ? 1u : 0u)) {
    return worker + " re-forms after failures, but at worker " + number(config_.me) +
           " all workers must take part";
  }
  const std::scoped_lock lock(members_);
  if (control && hello.job != kNobody && hello.job != job_) {
    return "worker 0 was restarted, so the job of " + worker +
           " has ended. Restart this worker, too, from the last checkpoint.";
  }
  // In the first generation, the first exchange of all workers reports this instead, so that all of them
  // learn it.
  const bool later = config_.forms || hello.forms == 1;
  const int told = config_.replicas.empty() ? 0 : config_.replicas[static_cast<std::size_t>(hello.from)];
  if (later && hello.replicas != 0 && told != 0 && hello.replicas != told) {
    return worker + " has " + number(hello.replicas) + (hello.replicas == 1 ? " replica" : " replicas") +
           ", but worker " + number(config_.me) + " expects " + number(told) +
           ". Set DIST_REPLICAS or num_replicas to match.";
  }
  return "";
}

// Admits an authenticated member of the job. Returns an empty string, or the reason for a refusal. A worker
// that has ended in this network may belong to the next strategy.
std::string Endpoint::admit(const LinkRef& link, const Hello& hello, Admission::Answer* answer) noexcept {
  Peer& peer = at(hello.from);
  const bool control = hello.purpose == Purpose::kControl;
  if (hello.receiver != kNobody && hello.receiver != incarnation_) {
    return "it expects an earlier process of worker " + number(config_.me) +
           ", which is no longer in the job";
  }
  const std::string not_now = not_in_this_generation(hello);
  if (!not_now.empty()) {
    if (ends()) *answer = Admission::Answer::kLater;
    return not_now;
  }
  // The peer has left this generation without having met worker 0.
  if (control && hello.forms == 1 && !config_.forms) leaves_unmet(peer);
  FrameQueue& queue = control ? peer.control_queue : peer.in_queue;
  {
    const std::scoped_lock peer_lock(peer.in_mutex);
    const std::scoped_lock lock(members_);
    const bool is_over = peer.life == Life::kLost || peer.life == Life::kLeft;
    const bool same = peer.known && peer.incarnation == hello.sender;
    if (control && !same && (is_over || (hello.forms == 1 && (formed_ || !config_.forms)))) {
      *answer = Admission::Answer::kLater;
      peer.asked_ns = steady_now_ns();
      asked_ns_.store(peer.asked_ns, std::memory_order_relaxed);
      if (!is_over || hello.forms == 1)
        return "it has not started to re-form yet. Call `dist_strategy_reform()` there when "
               "`dist_strategy_reform_due()` reports it."_m;
    }
    if (is_over || (!control && peer.in_gone)) {
      return "worker " + number(hello.from) + " is no longer part of this job: " + peer.why;
    }
    if (control && peer.control != nullptr && peer.incarnation != hello.sender) {
      if (ends()) *answer = Admission::Answer::kLater;
      return "worker " + number(hello.from) +
             " has already joined and is running, so this is a second process for it";
    }
    if (!know(peer, hello.sender)) {
      return "this is another process of worker " + number(hello.from) + " than the one that has joined";
    }
    LinkRef& place = control ? peer.control : peer.in;
    if (place != nullptr) return "worker " + number(hello.from) + " is already connected";
    place = link;
    peer.life = Life::kHere;
    reached(peer);
    if (control) peer.came_from = hello.came_from;
    link->peer = hello.from;
    link->purpose = hello.purpose;
    link->stage = carries(*link) ? Link::Stage::kMeeting : Link::Stage::kOpen;
    peer.heard_ns = steady_now_ns();
    if (!control) peer.connected = true;
    if (!control && closed_) peer.in_queue.put({.kind = FrameKind::kLeaving});
  }
  proven(*link);
  Admission admission;
  admission.answer = Admission::Answer::kWelcome;
  put(*link, admission);
  if (!carries(*link)) link->open(queue);
  if (control) introduce(peer);
  link->flush();
  begin_out(peer);
  if (control && closed_) leave_if_done();
  if (control) wake();
  return "";
}

}  // namespace dist::grpc_link
