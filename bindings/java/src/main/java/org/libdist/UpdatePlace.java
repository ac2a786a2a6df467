// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * The copy for which an update function is called.
 *
 * @param replica replica that owns the copy; -1 for no single replica, as with central storage
 * @param device name of the copy's device; "" for the default strategy
 * @param copy the copy to change; null in {@link Strategy#updateNonSlot}
 */
public record UpdatePlace(int replica, String device, Tensor copy) {}
