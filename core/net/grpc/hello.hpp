// SPDX-License-Identifier: Apache-2.0
// The handshake of a link, before there are frames. All messages have a fixed size, so a peer that has not
// proven its identity cannot make this process allocate memory:
//
//     client                       server
//     Hello                        its identity and its cluster
//                   Answer         its identity or a reason to refuse, and a proof that it knows the job's secret
//     Proof                        that the client knows the secret, too
//                   Admission      accepted, or the reason for a refusal; frames may follow immediately
//     frames
//
// A proof is an HMAC-SHA256, keyed with the secret, over all preceding bytes, which contain a fresh random
// number from each side.
//
// A refusal is final only if its sender has proven that it knows the secret. Otherwise anything can be
// listening at the address, for example a job that is about to end, so the client tries again until its
// deadline. A server that is ending refuses without a proof.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/net/grpc/frame.hpp"

namespace dist::grpc_link {

inline constexpr uint32_t kProtocol = 4;
inline constexpr std::size_t kVersionBytes = 32;
inline constexpr std::size_t kTransportBytes = 16;

using Identity = std::array<std::byte, kIdentityBytes>;  // identifies one life of a process: its incarnation
using Digest = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;

enum class Purpose : uint32_t { kControl = 1, kData = 2, kCalls = 3 };

struct Hello {
  static constexpr std::size_t kBytes =
      8 + 4 + kVersionBytes + 7 * 4 + kTransportBytes + 2 * 8 + 32 + 3 * kIdentityBytes + 32;

  uint32_t protocol = kProtocol;
  char version[kVersionBytes] = "";
  Purpose purpose = Purpose::kData;
  uint32_t forms = 0;      // 1: worker 0 decides which workers take part; 0: all workers do
  uint32_t came_from = 0;  // the generation that it was in before
  int32_t from = 0;
  int32_t to = 0;
  int32_t num_workers = 0;
  char transport[kTransportBytes] = "";  // "grpc", or the link module that moves data
  uint64_t credit = 0;
  uint64_t lease_ns = 0;
  Digest cluster{};
  Identity sender{};
  Identity receiver{};   // all zero: not known yet
  int32_t replicas = 0;  // number of the sender's replicas; 0: not specified
  Identity job{};        // the job to which the sender belonged; all zero: none
  Nonce nonce{};

  void write(std::byte* to_bytes) const noexcept;
  // If this returns true, protocol and version are valid. The other fields are valid only if the protocol is
  // this one.
  bool read(const std::byte* bytes) noexcept;
};

struct Answer {
  static constexpr std::size_t kBytes =
      8 + 4 + kVersionBytes + 4 + 2 * kIdentityBytes + 32 + kReasonTextBytes + 32;
  static constexpr std::size_t kProofAt = kBytes - 32;
  static constexpr std::size_t kBeginningBytes =
      8 + 4 + kVersionBytes;  // has the same layout in all protocols

  uint32_t protocol = kProtocol;
  char version[kVersionBytes] = "";
  bool welcome = false;
  Identity receiver{};
  Identity job{};  // worker 0's job
  Nonce nonce{};
  char text[kReasonTextBytes] = "";
  Digest proof{};

  void write(std::byte* to_bytes) const noexcept;
  // If this returns true, protocol and version are valid. The other fields are valid only if the protocol is
  // this one.
  bool read(std::span<const std::byte> bytes) noexcept;
};

inline constexpr std::size_t kProofBytes = 32;

struct Admission {
  static constexpr std::size_t kBytes = 4 + kReasonTextBytes;
  // kLater: the worker may be accepted if it asks again later.
  enum class Answer : uint32_t { kNo, kWelcome, kLater };

  Answer answer = Answer::kNo;
  char text[kReasonTextBytes] = "";

  void write(std::byte* to_bytes) const noexcept;
  bool read(const std::byte* bytes) noexcept;
};

// The side that makes the proof. `answer`: for the server, the answer without its proof; for the client, the
// whole answer.
enum class Prover { kServer, kClient };
Digest prove(Prover who, std::string_view secret, const std::byte* hello, const std::byte* answer) noexcept;
// Compares in constant time.
bool equal(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept;
// Returns false if the system provides no random bytes.
bool random_bytes(std::byte* to, std::size_t bytes) noexcept;

// On the client: returns an empty string and sets *out, or returns what is wrong with the answer. `proven`
// receives whether its sender knows the secret.
std::string check_answer(const std::string& secret, const std::string& version, const std::byte* hello,
                         std::span<const std::byte> message, Answer* out, bool* proven);
// On the server: writes the answer to an accepted hello, with its proof, to `bytes`, and keeps the hello in
// `kept_hello`. Returns false if the system provides no random bytes.
bool write_welcome(const Identity& me, const std::string& secret, std::span<const std::byte> hello,
                   std::byte* kept_hello, Answer* answer, std::byte* bytes) noexcept;

// On the server: completes the answer to a hello that is refused. If `final` is set, it contains a proof.
void complete_refusal(const std::string& secret, std::span<const std::byte> hello, const std::string& why,
                      bool final, Answer* answer) noexcept;

// SHA-256 of a sequence of texts, including their boundaries.
class ClusterDigest {
 public:
  ClusterDigest() noexcept;
  void add(std::string_view text) noexcept;
  Digest take() noexcept;

 private:
  alignas(16) std::byte state_[256];
};

}  // namespace dist::grpc_link
