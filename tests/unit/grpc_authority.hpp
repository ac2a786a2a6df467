// SPDX-License-Identifier: Apache-2.0
// Makes authorities and certificates for tests, also ones that openssl(1) does not make: expired, not yet
// valid, or with names of any kind.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string>

#include "core/net/grpc/certificates.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist::grpc_link {

struct Issued {
  std::string certificate, key;  // PEM texts
};

struct Wanted {
  std::string names = "IP:127.0.0.1";  // as in the configuration of openssl(1); empty: none
  long from_days = -1, to_days = 2;    // relative to now
  std::string usage = "";              // extended key usage; empty: any
  std::string subject = "a process";
  unsigned rsa_bits = 0;  // 0: a key on an elliptic curve
};

class Authority {
 public:
  explicit Authority(const std::string& name) : name_(name), key_(EVP_EC_gen("P-256")) {
    const OpensslRef<X509> own = begin({.names = "", .subject = name}, key_.get());
    add(own.get(), own.get(), NID_basic_constraints, "critical,CA:TRUE");
    X509_set_issuer_name(own.get(), X509_get_subject_name(own.get()));
    X509_sign(own.get(), key_.get(), EVP_sha256());
    pem_ = text_of(own.get());
    self_.reset(X509_dup(own.get()));
  }

  const std::string& pem() const { return pem_; }

  Issued issue(const Wanted& wanted = {}) const {
    const OpensslRef<EVP_PKEY> key(wanted.rsa_bits != 0 ? EVP_RSA_gen(wanted.rsa_bits) : EVP_EC_gen("P-256"));
    const OpensslRef<X509> made = begin(wanted, key.get());
    X509_set_issuer_name(made.get(), X509_get_subject_name(self_.get()));
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return {text_of(made.get()), text_of(key.get(), nullptr)};
  }

  // The same key, encrypted.
  static std::string encrypt(const std::string& key) {
    const OpensslRef<BIO> from(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
    const OpensslRef<EVP_PKEY> read(PEM_read_bio_PrivateKey(from.get(), nullptr, nullptr, nullptr));
    return text_of(read.get(), EVP_aes_128_cbc());
  }

 private:
  static void add(X509* to, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    assert_true(made != nullptr);
    X509_add_ext(to, made, -1);
    X509_EXTENSION_free(made);
  }

  static OpensslRef<X509> begin(const Wanted& wanted, EVP_PKEY* key) {
    static long serial = 0;
    OpensslRef<X509> made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    X509_time_adj_ex(X509_getm_notBefore(made.get()), static_cast<int>(wanted.from_days), 0, nullptr);
    X509_time_adj_ex(X509_getm_notAfter(made.get()), static_cast<int>(wanted.to_days), 0, nullptr);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(wanted.subject.c_str()), -1, -1, 0);
    X509_set_pubkey(made.get(), key);
    if (!wanted.names.empty()) add(made.get(), made.get(), NID_subject_alt_name, wanted.names);
    if (!wanted.usage.empty()) add(made.get(), made.get(), NID_ext_key_usage, wanted.usage);
    return made;
  }

  template <class Write>
  static std::string written(const Write& write) {
    const OpensslRef<BIO> to(BIO_new(BIO_s_mem()));
    assert_int_equal(write(to.get()), 1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(to.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
  static std::string text_of(X509* certificate) {
    return written([&](BIO* to) { return PEM_write_bio_X509(to, certificate); });
  }
  static std::string text_of(EVP_PKEY* key, const EVP_CIPHER* cipher) {
    char passphrase[] = "passphrase";
    return written([&](BIO* to) {
      return PEM_write_bio_PrivateKey(to, key, cipher, nullptr, 0, nullptr,
                                      cipher == nullptr ? nullptr : passphrase);
    });
  }

  const std::string name_;
  const OpensslRef<EVP_PKEY> key_;
  OpensslRef<X509> self_;
  std::string pem_;
};

}  // namespace dist::grpc_link
