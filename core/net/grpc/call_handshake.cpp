// SPDX-License-Identifier: Apache-2.0
// The handshake of a call link: decides which clients are admitted. hello.hpp defines the messages. Both ends
// prove that they know the job's secret. A client has no address; with TLS, any certificate issued by the
// authority is accepted from it.
#include <algorithm>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/status.hpp"
#include "core/base/text.hpp"
#include "core/net/grpc/calls.hpp"

namespace dist::grpc_link {
// ---- The client's side ----

void Calls::say_hello(Link& link) {
  Hello hello;
  copy_text(hello.version, config_.version.c_str());
  hello.purpose = Purpose::kCalls;
  hello.from = -1;
  hello.to = -1;
  hello.lease_ns = static_cast<uint64_t>(config_.lease_ns);
  hello.sender = incarnation_;
  (void)random_bytes(hello.nonce.data(), hello.nonce.size());
  hello.write(link.hello);
  put(link, hello);
}

std::string Calls::took_answer(Link& link, std::span<const std::byte> message) noexcept {
  if (link.ending()) return "";
  if (config_.tls()) {
    // gRPC has checked the name, too, but it also accepts names of other kinds.
    const std::string wrong =
        why_not_for(static_cast<ClientLink&>(link).server_certificate(), host_of(link.line->address));
    if (!wrong.empty())
      return reject_server(
          link, wrong + ". Set DIST_TLS_CERTIFICATE of the server to one for " + host_of(link.line->address));
  }
  Answer answer;
  bool is_of_job = false;
  const std::string why =
      check_answer(config_.secret, config_.version, link.hello, message, &answer, &is_of_job);
  if (!why.empty()) {
    link.refused = is_of_job;
    return why;
  }
  std::copy(message.begin(), message.end(), link.answer);
  const Digest proof = prove(Prover::kClient, config_.secret, link.hello, link.answer);
  link.put_raw(proof.data(), proof.size());
  link.stage = Link::Stage::kAdmission;
  link.open(link.line->queue);
  link.flush();
  return "";
}

std::string Calls::took_admission(Link& link, std::span<const std::byte> message) noexcept {
  Admission admission;
  if (message.size() != Admission::kBytes || !admission.read(message.data())) return "an invalid admission";
  if (admission.answer != Admission::Answer::kWelcome) {
    link.refused = true;
    return admission.text;
  }
  proven(link);
  CallLine& line = *link.line;
  {
    const std::scoped_lock lock(line.mutex);
    line.why.clear();
    line.failed_attempts.clear();
    line.causes.clear();
    line.early_cause.clear();
  }
  line.heard_ns = steady_now_ns();
  link.stage = Link::Stage::kOpen;
  wake();
  link.flush();
  return "";
}

// ---- The server's side ----

// Returns what is wrong with a hello, before any proof. Empty if it is acceptable.
std::string Calls::why_not(const Hello& hello) const {
  if (hello.protocol != kProtocol) {
    return "the client uses protocol " + std::to_string(hello.protocol) + " (libdist " + hello.version +
           "), but the server uses protocol " + std::to_string(kProtocol) + " (libdist " + config_.version +
           "). Run the same version of libdist in both.";
  }
  if (config_.version != hello.version) {
    return std::string("the client uses libdist ") + hello.version + ", but the server uses libdist " +
           config_.version + ". Run the same version in both.";
  }
  if (hello.purpose != Purpose::kCalls) return "this is a server for calls, not a worker";
  if (hello.lease_ns != static_cast<uint64_t>(config_.lease_ns)) {
    return std::string("the client has a lease of ") +
           DurationText(static_cast<int64_t>(hello.lease_ns)).text + ", but the server has a lease of " +
           DurationText(config_.lease_ns).text + ". Set the same DIST_LEASE_SECONDS for both.";
  }
  return "";
}

std::string Calls::took_hello(Link& link, std::span<const std::byte> message) noexcept {
  if (link.refused) return "";
  Hello hello;
  if (message.size() != Hello::kBytes || !hello.read(message.data())) return "an invalid hello";
  Answer answer;
  copy_text(answer.version, config_.version.c_str());
  const std::string refusal = why_not(hello);
  if (!refusal.empty()) {
    complete_refusal(config_.secret, message, refusal, !stopping(), &answer);
    link.refused = true;
    put(link, answer);
    link.end_after_writes(refusal);
    return "";
  }
  if (!write_welcome(incarnation_, config_.secret, message, link.hello, &answer, link.answer))
    return "the system provides no random numbers";
  link.put_raw(link.answer, Answer::kBytes);
  link.stage = Link::Stage::kProof;
  link.flush();
  return "";
}

std::string Calls::took_proof(const LinkRef& link, std::span<const std::byte> message) noexcept {
  if (link->refused) return "";
  if (Admission admission; is_rejection(message, &admission)) return "the client rejects this server";
  const Digest wanted = prove(Prover::kClient, config_.secret, link->hello, link->answer);
  std::string refusal;
  if (message.size() != kProofBytes || !equal(message.data(), wanted.data(), wanted.size())) {
    refusal = "its DIST_JOB_SECRET differs. Set the same secret for all processes of the job.";
  } else {
    incoming_.proven(link->connection);
    auto line = std::make_shared<CallLine>(memory_, true, limits_, pool_.get());
    line->heard_ns = steady_now_ns();
    line->link = link;
    line->client_host = host_of_peer(link->connection);
    const std::scoped_lock lock(mutex_);
    const auto clients = static_cast<std::size_t>(
        std::count_if(lines_.begin(), lines_.end(), [](const auto& each) { return each->serves; }));
    if (clients < limits_.clients) {
      lines_.push_back(line);
      link->line = std::move(line);
    } else {
      refusal = "the server already has " + std::to_string(clients) + " clients, which is the limit";
    }
  }
  Admission admission;
  if (!refusal.empty()) {
    copy_text(admission.text, refusal.c_str());
    link->refused = true;
    put(*link, admission);
    link->end_after_writes(refusal);
    return "";
  }
  proven(*link);
  admission.answer = Admission::Answer::kWelcome;
  put(*link, admission);
  link->stage = Link::Stage::kOpen;
  link->open(link->line->queue);
  link->flush();
  return "";
}

}  // namespace dist::grpc_link
