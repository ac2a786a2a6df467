// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;

/** The dtype and the shape of a tensor. */
public record TensorSpec(DType dtype, List<Long> shape) {}
