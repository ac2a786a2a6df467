// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/decode/product.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

// From GCC's OpenMP, which runs oneDNN's threads.
extern "C" void omp_set_num_threads(int num_threads);

namespace bench::decode {

const bool Product::kAvailable = true;

struct Product::Engine {
  Engine(int members, int count) {
    omp_set_num_threads(1);  // of the calling thread
    using dnnl::memory;
    const auto rows = static_cast<memory::dim>(kElements), share = rows / members;
    const memory::desc in({1, share}, memory::data_type::bf16, memory::format_tag::ab);
    const memory::desc weights({share, rows}, memory::data_type::bf16, memory::format_tag::any);
    const memory::desc out({1, rows}, memory::data_type::bf16, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc product(dnnl::matmul::desc(in, weights, out), engine);
    run = dnnl::matmul(product);
    const auto fill = [](memory& filled) {
      auto* const elements = static_cast<uint16_t*>(filled.get_data_handle());
      for (size_t i = 0; i < filled.get_desc().get_size() / sizeof *elements; ++i)
        elements[i] =
            static_cast<uint16_t>(0x3c00 | (i * 2654435761U >> 16 & 0x81ff));  // about 0.01, of either sign
    };
    arguments[DNNL_ARG_SRC] = memory(product.src_desc(), engine);
    fill(arguments[DNNL_ARG_SRC]);
    arguments[DNNL_ARG_DST] = memory(product.dst_desc(), engine);
    for (int i = 0; i < count; ++i) fill(matrices.emplace_back(product.weights_desc(), engine));
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul run;
  std::unordered_map<int, dnnl::memory> arguments;
  std::vector<dnnl::memory> matrices;
};

Product::Product(int members, int matrices)
    : engine_(matrices == 0 ? nullptr : std::make_unique<Engine>(members, matrices)) {}

Product::~Product() = default;

void Product::multiply(int step) {
  if (engine_ == nullptr) return;
  engine_->arguments[DNNL_ARG_WEIGHTS] =
      engine_->matrices[static_cast<size_t>(step) % engine_->matrices.size()];
  engine_->run.execute(engine_->stream, engine_->arguments);
}

}  // namespace bench::decode
