// SPDX-License-Identifier: Apache-2.0
// Written by bindings/enums.py from the headers: do not edit.

package org.libdist;

/** The order of replicas and their logical devices in a mesh (TensorFlow: DeviceOrderMode). */
public enum DeviceOrder {
    /** Rings if they fit, else blocks. */
    AUTO(0x1300),
    /** Each is a neighbour of the next; an error if that is impossible. */
    RING(0x1301),
    /** Blocks. */
    MESH(0x1302);

    final int code;

    DeviceOrder(int code) {
        this.code = code;
    }

    static DeviceOrder of(int code) {
        return switch (code) {
            case 0x1300 -> AUTO;
            case 0x1301 -> RING;
            case 0x1302 -> MESH;
            default -> throw new DistException(Status.INTERNAL, "DeviceOrder: libdist gave " + code);
        };
    }
}
