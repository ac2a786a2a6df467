// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/hello.hpp"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>

#include "core/base/wire.hpp"

namespace dist::grpc_link {
namespace {

constexpr uint64_t kMagic = 0x6B6E694C74736944;  // "DistLink"

template <std::size_t N>
void put_bytes(WireWriter& out, const std::array<std::byte, N>& bytes) noexcept {
  for (const std::byte each : bytes) out.put(static_cast<uint8_t>(each));
}

template <std::size_t N>
void take_bytes(WireReader& in, std::array<std::byte, N>* bytes) noexcept {
  if (const std::byte* const at = in.take_bytes(N); at != nullptr) std::memcpy(bytes->data(), at, N);
}

const uint8_t* raw(const void* bytes) noexcept { return static_cast<const uint8_t*>(bytes); }

}  // namespace

void Hello::write(std::byte* to_bytes) const noexcept {
  WireWriter out(to_bytes);
  out.put(kMagic);
  out.put(protocol);
  out.put(version);
  out.put(static_cast<uint32_t>(purpose));
  out.put(forms);
  out.put(came_from);
  out.put(from);
  out.put(to);
  out.put(num_workers);
  out.put(transport);
  out.put(credit);
  out.put(lease_ns);
  put_bytes(out, cluster);
  put_bytes(out, sender);
  put_bytes(out, receiver);
  out.put(replicas);
  put_bytes(out, job);
  put_bytes(out, nonce);
}

bool Hello::read(const std::byte* bytes) noexcept {
  WireReader in(bytes, kBytes);
  if (in.take<uint64_t>() != kMagic) return false;
  protocol = in.take<uint32_t>();
  in.take(version);
  if (!in.good()) return false;
  if (protocol != kProtocol) return true;
  purpose = static_cast<Purpose>(in.take_in<uint32_t>(1, 3));
  forms = in.take_in<uint32_t>(0, 1);
  came_from = in.take<uint32_t>();
  from = in.take<int32_t>();
  to = in.take<int32_t>();
  num_workers = in.take<int32_t>();
  in.take(transport);
  credit = in.take<uint64_t>();
  lease_ns = in.take<uint64_t>();
  take_bytes(in, &cluster);
  take_bytes(in, &sender);
  take_bytes(in, &receiver);
  replicas = in.take<int32_t>();
  take_bytes(in, &job);
  take_bytes(in, &nonce);
  return in.good();
}

void Answer::write(std::byte* to_bytes) const noexcept {
  WireWriter out(to_bytes);
  out.put(kMagic);
  out.put(protocol);
  out.put(version);
  out.put<uint32_t>(welcome ? 1 : 0);
  put_bytes(out, receiver);
  put_bytes(out, job);
  put_bytes(out, nonce);
  out.put(text);
  put_bytes(out, proof);
}

bool Answer::read(std::span<const std::byte> bytes) noexcept {
  WireReader in(bytes.data(), bytes.size());
  if (in.take<uint64_t>() != kMagic) return false;
  protocol = in.take<uint32_t>();
  in.take(version);
  if (!in.good()) return false;
  if (protocol != kProtocol) return true;
  welcome = in.take_in<uint32_t>(0, 1) == 1;
  take_bytes(in, &receiver);
  take_bytes(in, &job);
  take_bytes(in, &nonce);
  in.take(text);
  take_bytes(in, &proof);
  return in.good() && bytes.size() == kBytes;
}

void Admission::write(std::byte* to_bytes) const noexcept {
  WireWriter out(to_bytes);
  out.put(static_cast<uint32_t>(answer));
  out.put(text);
}

bool Admission::read(const std::byte* bytes) noexcept {
  WireReader in(bytes, kBytes);
  answer = static_cast<Answer>(in.take_in<uint32_t>(0, static_cast<uint32_t>(Answer::kLater)));
  in.take(text);
  return in.good();
}

Digest prove(Prover who, std::string_view secret, const std::byte* hello, const std::byte* answer) noexcept {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret.size(), raw(secret.data()));
  const char* const name = who == Prover::kServer ? "server" : "client";
  hmac_sha256_update(&context, 6, raw(name));
  hmac_sha256_update(&context, Hello::kBytes, raw(hello));
  hmac_sha256_update(&context, who == Prover::kServer ? Answer::kProofAt : Answer::kBytes, raw(answer));
  Digest digest;
  hmac_sha256_digest(&context, digest.size(), reinterpret_cast<uint8_t*>(digest.data()));
  return digest;
}

bool equal(const std::byte* a, const std::byte* b, std::size_t bytes) noexcept {
  return memeql_sec(a, b, bytes) != 0;
}

bool random_bytes(std::byte* to, std::size_t bytes) noexcept {
  try {
    std::random_device source("/dev/urandom");
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(source());
    return true;
  } catch (...) {
    return false;
  }
}

std::string check_answer(const std::string& secret, const std::string& version, const std::byte* hello,
                         std::span<const std::byte> message, Answer* out, bool* proven) {
  *proven = false;
  if (message.size() < Answer::kBeginningBytes || !out->read(message))
    return "the program that answers at that address is not libdist";
  if (out->protocol != kProtocol) {
    return "it uses protocol " + std::to_string(out->protocol) + " (libdist " + out->version +
           "), but this process uses " + std::to_string(kProtocol) + " (libdist " + version + ")";
  }
  const Digest wanted = prove(Prover::kServer, secret, hello, message.data());
  *proven = equal(wanted.data(), out->proof.data(), wanted.size());
  if (!out->welcome) return out->text[0] != '\0' ? out->text : "it refused without a reason";
  return *proven ? "" : "its DIST_JOB_SECRET differs. Set the same secret for all processes of the job.";
}

bool write_welcome(const Identity& me, const std::string& secret, std::span<const std::byte> hello,
                   std::byte* kept_hello, Answer* answer, std::byte* bytes) noexcept {
  answer->welcome = true;
  answer->receiver = me;
  if (!random_bytes(answer->nonce.data(), answer->nonce.size())) return false;
  std::copy(hello.begin(), hello.end(), kept_hello);
  answer->write(bytes);
  answer->proof = prove(Prover::kServer, secret, kept_hello, bytes);
  answer->write(bytes);
  return true;
}

void complete_refusal(const std::string& secret, std::span<const std::byte> hello, const std::string& why,
                      bool final, Answer* answer) noexcept {
  copy_text(answer->text, why.c_str());
  if (!final) return;
  std::byte bytes[Answer::kBytes];
  answer->write(bytes);
  answer->proof = prove(Prover::kServer, secret, hello.data(), bytes);
}

static_assert(sizeof(sha256_ctx) <= 256);

ClusterDigest::ClusterDigest() noexcept { sha256_init(new (state_) sha256_ctx); }

void ClusterDigest::add(std::string_view text) noexcept {
  auto* const state = std::launder(reinterpret_cast<sha256_ctx*>(state_));
  std::byte size[8];
  WireWriter(size).put<uint64_t>(text.size());
  sha256_update(state, sizeof size, raw(size));
  sha256_update(state, text.size(), raw(text.data()));
}

Digest ClusterDigest::take() noexcept {
  Digest digest;
  sha256_digest(std::launder(reinterpret_cast<sha256_ctx*>(state_)), digest.size(),
                reinterpret_cast<uint8_t*>(digest.data()));
  return digest;
}

}  // namespace dist::grpc_link
