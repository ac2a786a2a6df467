// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * What one call of an update function is for.
 *
 * @param replica whose copy it is; -1: no replica's in particular, as central storage's
 * @param device its name; "" for the default strategy
 * @param copy to be changed; null in {@link Strategy#updateNonSlot}
 */
public record UpdatePlace(int replica, String device, Tensor copy) {}
