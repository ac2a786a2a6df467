// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/probe.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/os/clock.hpp"
#include "core/base/os/dial.hpp"
#include "core/base/os/socket.hpp"
#include "core/base/os/thread.hpp"
#include "core/net/grpc/config.hpp"
#include "core/net/grpc/connect_token.hpp"

namespace dist::grpc_link {
namespace {

// If a peer's first answer takes longer, the probe reports that it is waiting, in case a call's deadline
// passes first.
constexpr int64_t kEarlyNs = 200'000'000;
constexpr int64_t kConnectNs = 3'000'000'000;
constexpr int64_t kExchangeNs = 3'000'000'000;
constexpr char kAllOrNone[] =
    " Set DIST_TLS_CA, DIST_TLS_CERTIFICATE and DIST_TLS_KEY for all processes of the job, or for none";
constexpr char kNotAccepted[] =
    "no connection to its address is accepted in time. The program there may be stopped or overloaded";
constexpr char kNoAnswer[] =
    "the program at that address accepts connections, but does not answer as libdist";
constexpr char kCloses[] =
    "the program at that address closes connections without an answer, so it is not libdist or is ending";

// One TLS connection to a peer. The peer's certificate may be invalid.
class Look {
 public:
  enum class End { kDone, kClosed, kSilent, kNoTls, kFailed };

  Look(SSL_CTX* context, Dialled& connection) noexcept
      : connection_(connection), ssl_(SSL_new(context)), until_ns_(steady_now_ns() + kExchangeNs) {
    if (ssl_ == nullptr) return;
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
    // gRPC closes connections that do not negotiate HTTP/2.
    constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), kHttp2, sizeof kHttp2);
    // The handshake continues despite an invalid certificate. SSL_get_verify_result() returns the result.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);
  }

  SSL* ssl() const noexcept { return ssl_.get(); }
  Speaks speaks() const noexcept { return speaks_; }
  // After End::kFailed: the peer's alert, or another error of OpenSSL.
  const std::string& error() const noexcept { return error_; }

  End connect() noexcept {
    return drive([this] { return SSL_connect(ssl_.get()); });
  }
  // Waits for the first byte after the handshake. A gRPC server sends its settings when it has accepted a
  // client.
  End await_data() noexcept {
    char byte;
    return drive([&] { return SSL_read(ssl_.get(), &byte, 1); });
  }

 private:
  template <class Step>
  End drive(Step&& step) noexcept {
    for (;;) {
      ERR_clear_error();
      const int done = step();
      const int state = SSL_get_error(ssl_.get(), done);
      if (!flush()) return End::kClosed;
      if (done > 0) return End::kDone;
      if (state == SSL_ERROR_ZERO_RETURN) return End::kClosed;
      if (state != SSL_ERROR_WANT_READ) {
        const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
        error_ = reason != nullptr ? reason : "an unknown error";
        return End::kFailed;
      }
      std::byte bytes[4096];
      const std::ptrdiff_t came = connection_.receive(bytes, until_ns_);
      if (came == 0) return End::kSilent;
      if (came < 0) return End::kClosed;
      const std::span<const std::byte> given(bytes, static_cast<std::size_t>(came));
      if (!std::exchange(heard_, true)) speaks_ = first_bytes_tell(given);
      if (speaks_ != Speaks::kTls) return End::kNoTls;
      BIO_write(in_, bytes, static_cast<int>(came));
    }
  }
  bool flush() noexcept {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out_, &data);
    if (size <= 0) return true;
    const bool sent =
        connection_.send(std::as_bytes(std::span(data, static_cast<std::size_t>(size))), until_ns_);
    (void)BIO_reset(out_);
    return sent;
  }

  Dialled& connection_;
  const OpensslRef<SSL> ssl_;
  const int64_t until_ns_;
  BIO* in_ = nullptr;  // owned by ssl_, like the next member
  BIO* out_ = nullptr;
  bool heard_ = false;
  Speaks speaks_ = Speaks::kOther;
  std::string error_;
};

// Describes what is wrong with the peer's certificate. `calls_back`: the peer also connects to this process
// with it.
std::string fault_of_peer(const Look& look, const Credentials& own, const std::string& host, bool calls_back,
                          const Places& places) {
  const OpensslRef<X509> certificate(SSL_get1_peer_certificate(look.ssl()));
  if (certificate == nullptr) return "";
  Fault fault = why_not_valid(certificate.get(), SSL_get_verify_result(look.ssl()), own.ca, places);
  if (!fault) {
    fault.why = why_not_for(certificate.get(), host);
    if (fault) fault.remedy = "Set DIST_TLS_CERTIFICATE " + places.certificate + " to one for " + host;
  }
  if (!fault && calls_back && X509_check_purpose(certificate.get(), X509_PURPOSE_SSL_CLIENT, 0) != 1)
    fault = why_not_valid(certificate.get(), X509_V_ERR_INVALID_PURPOSE, own.ca, places);
  return fault ? "its certificate " + fault.text() : "";
}

// The names of the authorities that the peer accepts, if none of them has issued the own certificate.
std::string authorities_of_peer(const Look& look) {
  const STACK_OF(X509_NAME)* const names = SSL_get0_peer_CA_list(look.ssl());
  X509* const own = SSL_get_certificate(look.ssl());
  if (own == nullptr || sk_X509_NAME_num(names) <= 0) return "";
  STACK_OF(X509)* chain = nullptr;
  SSL_get0_chain_certs(look.ssl(), &chain);
  std::string text;
  for (int i = 0; i < sk_X509_NAME_num(names); ++i) {
    const X509_NAME* const each = sk_X509_NAME_value(names, i);
    if (X509_NAME_cmp(each, X509_get_issuer_name(own)) == 0) return "";
    for (int k = 0; k < sk_X509_num(chain); ++k) {
      if (X509_NAME_cmp(each, X509_get_issuer_name(sk_X509_value(chain, k))) == 0) return "";
    }
    if (i < 3) text += (i == 0 ? "" : ", ") + name_text(each);
  }
  return text;
}

// What messages call the probing process. Worker 0's reports reach all workers, for which "this process"
// would be another one.
std::string name_of(const Self& self) {
  return self.number >= 0 ? "worker " + std::to_string(self.number) : "this process";
}

// Describes why the peer has closed the connection after it had received the own certificate.
std::string fault_of_own(const Look& look, const Self& self, const Places& places) {
  const Credentials& own = self.credentials;
  X509* const certificate = SSL_get_certificate(look.ssl());
  if (certificate == nullptr) return "";
  const std::string text = "it rejects the certificate of " + name_of(self) + ", which ";
  if (const Fault fault = why_own_rejected(own, self.host, places)) return text + fault.text();
  const std::string accepted = authorities_of_peer(look);
  const std::string issuer = issuer_of(certificate);
  if (!accepted.empty())
    return text + "was issued by an unknown authority, " + issuer + "; it accepts " + accepted +
           ". Set DIST_TLS_CA " + places.authorities +
           " to the authority of that certificate, or replace DIST_TLS_CERTIFICATE " + places.certificate;
  return text + "is valid " + places.certificate + " and was issued by " + issuer +
         fingerprint_of_authority(own) +
         ". The authority of that name that it trusts may have another key. Compare DIST_TLS_CA and the "
         "clocks "
         "of both machines";
}

// Joins two sentences. The second one has no period.
std::string join(const std::string& first, std::string second) {
  if (first.empty() || second.empty()) return first + second;
  second[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(second[0])));
  return first + ". " + second;
}

std::string examine(Look& look, const Self& self, uint64_t number, const std::string& host) {
  const Credentials& own = self.credentials;
  const std::string& own_host = self.host;
  const bool workers = self.number >= 0;
  const std::string here = workers ? "on worker " + std::to_string(self.number) : "here";
  const std::string there = workers ? "on worker " + std::to_string(number) : "of the server";
  const bool tls = !own.ca.empty();
  const Look::End end = look.connect();
  if (end == Look::End::kSilent) return kNoAnswer;
  if (end == Look::End::kNoTls) {
    if (!tls) return "";
    if (look.speaks() == Speaks::kPlainText)
      return "it uses plain text, but " + name_of(self) + " uses TLS." + kAllOrNone;
    return "the program at that address answers a TLS handshake with something else";
  }
  // The peer has answered with TLS.
  if (!tls && (look.speaks() == Speaks::kTls))
    return "it uses TLS, but " + name_of(self) + " uses plain text." + kAllOrNone;
  if (!tls) return "";
  const std::string peer = fault_of_peer(look, own, host, !own_host.empty(), {there, here});
  if (end == Look::End::kFailed && peer.empty()) return "the TLS handshake fails: " + look.error();
  if (end != Look::End::kDone) {
    // With TLS 1.2, the peer checks the own certificate before the handshake ends.
    return join(peer, SSL_get0_peer_certificate(look.ssl()) != nullptr
                          ? fault_of_own(look, self, {here, there})
                          : "");
  }
  switch (look.await_data()) {
    case Look::End::kDone: {
      // The peer has accepted this process as a client, but has not checked the name and the other direction
      // yet.
      const Fault fault = why_own_unfit(own, own_host, {here, there});
      return join(peer, fault ? "the certificate of " + name_of(self) + " " + fault.text() : "");
    }
    case Look::End::kSilent: return peer.empty() ? kNoAnswer : peer;
    default: return join(peer, fault_of_own(look, self, {here, there}));
  }
}

// Returns whether the peer has accepted the token that begins every connection. Otherwise `why` receives the
// reason.
bool present_token(const Self& self, Dialled& connection, const std::function<void(const char*)>& early,
                   std::string* why) {
  const int64_t begin_ns = steady_now_ns();
  const int64_t until_ns = begin_ns + kExchangeNs;
  const std::string request = connect_request(self.secret, self.number);
  if (!connection.send(std::as_bytes(std::span(request)), until_ns)) {
    *why = kCloses;
    return false;
  }
  constexpr std::string_view kAccepted = kAcceptedResponse;
  constexpr std::string_view kWrongSecret = kWrongSecretResponse;
  constexpr std::string_view kHttp = "HTTP/";
  // The bytes after the response belong to the next protocol and must stay in the socket.
  std::string response;
  while (response != kAccepted && response != kWrongSecret) {
    std::byte next{};
    std::ptrdiff_t came = 0;
    if (response.empty()) came = connection.receive({&next, 1}, begin_ns + kEarlyNs);
    if (came == 0) {
      if (response.empty()) early(kNoAnswer);
      came = connection.receive({&next, 1}, until_ns);
    }
    if (came == 0) {
      *why = kNoAnswer;
      return false;
    }
    if (came < 0 && response.empty()) {
      *why = kCloses;
      return false;
    }
    if (came > 0) response += static_cast<char>(next);
    const bool may_follow = kAccepted.starts_with(response) || kWrongSecret.starts_with(response);
    if (came > 0 && may_follow) continue;
    // Continue while the response may still become an HTTP response.
    if (came > 0 && kHttp.starts_with(response)) continue;
    *why = response.starts_with(kHttp) ? "the program at that address is an HTTP server, not libdist"
                                       : why_refused("");
    return false;
  }
  if (response == kWrongSecret) *why = why_refused("477");
  return response == kAccepted;
}

}  // namespace

Speaks first_bytes_tell(std::span<const std::byte> bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  // The type of a record and the major version of TLS.
  if (bytes.size() >= 2 && at(0) >= 20 && at(0) <= 23 && at(1) == 3) return Speaks::kTls;
  constexpr char kPreface[] = "PRI * HTTP/2";
  if (bytes.size() >= sizeof kPreface - 1 && std::memcmp(bytes.data(), kPreface, sizeof kPreface - 1) == 0)
    return Speaks::kPlainText;
  // A frame of HTTP/2: 3 bytes of length, its type (SETTINGS or GOAWAY), flags, and stream 0.
  if (bytes.size() >= 9 && at(0) == 0 && (at(3) == 4 || at(3) == 7) && at(4) == 0 &&
      std::all_of(bytes.begin() + 5, bytes.begin() + 9, [](std::byte each) { return each == std::byte{0}; }))
    return Speaks::kPlainText;
  return Speaks::kOther;
}

std::string probe(const Self& self, uint64_t peer, const std::string& host, Dialled& connection,
                  const std::function<void(const char*)>& early) {
  if (std::string why; !present_token(self, connection, early, &why)) return why;
  const OpensslErrors errors;
  const OpensslRef<SSL_CTX> context = make_context(self.credentials);
  if (context == nullptr) return "";
  Look look(context.get(), connection);
  if (look.ssl() == nullptr) return "";
  if (!is_ip_address(host)) SSL_set_tlsext_host_name(look.ssl(), host.c_str());
  return examine(look, self, peer, host);
}

Prober::Prober(Self self, Tell tell) : shared_(std::make_shared<Shared>()) {
  shared_->self = std::move(self);
  shared_->tell = std::move(tell);
}

Prober::~Prober() { stop(); }

void Prober::ask(uint64_t peer, const std::string& address) noexcept {
  Shared& shared = *shared_;
  try {
    const std::scoped_lock lock(shared.mutex);
    if (shared.stopped) return;
    const bool waits = std::any_of(shared.asked.begin(), shared.asked.end(),
                                   [&](const Asked& each) { return each.peer == peer; });
    if (!waits) shared.asked.push_back({peer, address});
    if (shared.threads >= std::min(kMostThreads, static_cast<int>(shared.asked.size()))) return;
    const AsyncSignalsBlocked blocked;
    std::thread([kept = shared_] {
      name_this_thread("dist-probe");
      work(kept);
    }).detach();
    ++shared.threads;
  } catch (const std::exception&) {
    // The next call tries again.
  }
}

std::string Prober::examine(Shared& shared, const Asked& asked) {
  const std::string host = host_of(asked.address);
  const std::string port = port_of(asked.address);
  const auto look_up = [&](int change) {
    const std::scoped_lock lock(shared.mutex);
    shared.looking_up += change;
    shared.changed.notify_all();
  };
  const auto early = [&](const char* cause) {
    if (!shared.stopped) shared.tell(asked.peer, cause, false);
  };
  Dialled connection(shared.stopped);
  look_up(1);
  const std::string why = connection.look_up(host, port);
  look_up(-1);
  if (!why.empty()) return "its host name does not resolve: " + why;
  if (shared.stopped) return "";
  // If no program listens, connect() fails at once, and gRPC reports the same. So only a connection that is
  // not accepted is described here.
  for (const int64_t patience_ns : {kEarlyNs, kConnectNs}) {
    const int64_t until_ns = steady_now_ns() + patience_ns;
    if (connection.connect(until_ns)) return probe(shared.self, asked.peer, host, connection, early);
    if (steady_now_ns() < until_ns || shared.stopped) return "";
    early(kNotAccepted);
  }
  return kNotAccepted;
}

void Prober::work(const std::shared_ptr<Shared>& shared) noexcept {
  for (;;) {
    auto next = shared->asked.end();
    {
      const std::scoped_lock lock(shared->mutex);
      next = std::find_if(shared->asked.begin(), shared->asked.end(),
                          [](const Asked& each) { return !each.taken; });
      if (shared->stopped || next == shared->asked.end()) {
        --shared->threads;
        return shared->changed.notify_all();
      }
      next->taken = true;
    }
    std::string cause;
    try {
      cause = examine(*shared, *next);
    } catch (const std::exception&) {
    }
    const uint64_t peer = next->peer;
    {
      const std::scoped_lock lock(shared->mutex);
      shared->asked.erase(next);
    }
    if (!shared->stopped) shared->tell(peer, cause, true);
  }
}

void Prober::stop() noexcept {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  shared.stopped = true;
  shared.changed.wait(lock, [&] { return shared.threads == shared.looking_up; });
}

}  // namespace dist::grpc_link
