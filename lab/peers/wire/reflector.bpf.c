// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The far end of a veth pair as a row of SubDevices that are already in Op, inside the kernel: every
// EtherCAT frame goes back at once, with the working counters that SUB_DEVICES drives would leave.
//
// Simplified on purpose: data is not touched, except that a read of the AL status answers Op
// (ETG.1000.6, 6.4.1); every SubDevice is taken to have inputs and outputs; and at most 40 datagrams a
// frame are looked at.

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifndef SUB_DEVICES
#error "compile with -DSUB_DEVICES=n"
#endif

#define ETHERNET_HEADER 14
#define FIRST_DATAGRAM 16
#define DATAGRAM_HEADER 10
#define LONGEST_DATA 1486
#define MAXIMUM_DATAGRAMS 40

#define AL_STATUS 0x0130
#define AL_OP 0x08

// How much one datagram's working counter rises (ETG.1000.4, 5.4.1.2: read 1, write 1, both 3).
static __always_inline unsigned short counted(unsigned char command)
{
	switch (command) {
	case 1: case 2: case 4: case 5:  // APRD, APWR, FPRD, FPWR: one SubDevice
		return 1;
	case 3: case 6:                  // APRW, FPRW: one SubDevice, read and written
		return 3;
	case 7: case 8: case 10: case 11: case 13: case 14:  // BRD, BWR, LRD, LWR, ARMW, FRMW: each counts one
		return SUB_DEVICES;
	case 9: case 12:                 // BRW, LRW: each reads and writes
		return 3 * SUB_DEVICES;
	default:                         // NOP
		return 0;
	}
}

SEC("xdp.reflect")
int reflect(struct xdp_md *context)
{
	unsigned char *frame = (void *)(long)context->data;
	unsigned char *end = (void *)(long)context->data_end;
	unsigned int offset = FIRST_DATAGRAM;

	if (frame + FIRST_DATAGRAM > end || frame[12] != 0x88 || frame[13] != 0xa4)
		return XDP_PASS;
	frame[6] |= 0x02;  // the first SubDevice marks the source address of what it sends back

	for (int datagrams = 0; datagrams < MAXIMUM_DATAGRAMS; datagrams++) {
		if (offset > FIRST_DATAGRAM + LONGEST_DATA)
			break;
		unsigned char *datagram = frame + offset;
		if (datagram + DATAGRAM_HEADER + 2 > end)
			break;
		unsigned short flags = datagram[6] | (datagram[7] << 8);
		unsigned int length = flags & 0x07ff;
		if (length > LONGEST_DATA)
			break;
		unsigned char *counter = datagram + DATAGRAM_HEADER + length;
		if (counter + 2 > end)
			break;
		unsigned short rise = counted(datagram[0]);
		unsigned short sum = (counter[0] | (counter[1] << 8)) + rise;
		counter[0] = sum & 0xff;
		counter[1] = sum >> 8;
		if ((datagram[0] == 7 || datagram[0] == 4) && (datagram[4] | (datagram[5] << 8)) == AL_STATUS)
			datagram[DATAGRAM_HEADER] = AL_OP;
		if (!(flags & 0x8000))
			break;
		offset += DATAGRAM_HEADER + length + 2;
	}
	return XDP_TX;
}

// XDP_TX crosses a veth pair only if the other end has a native XDP program too; this is the least one.
SEC("xdp.pass")
int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

char reflector_license[] SEC("license") = "Dual MIT/GPL";
