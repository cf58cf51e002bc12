// SPDX-License-Identifier: MIT OR Apache-2.0
//
// SOEM's process-data loop under measurement by `cargo xtask bench wire`:
// soem-wire INTERFACE SUB_DEVICES BYTES_EACH. SOEM itself is fetched and compiled on the machine that
// measures (it comes with pysoem's sources); none of it is kept here.
//
// Says `ready FRAME_BYTES`, then answers each number of cycles on standard input with one line: the CPU
// time they took together and each cycle's duration, all in nanoseconds.

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ethercat.h"

#define OVERHEAD (14 + 2 + 12)  // Ethernet, EtherCAT and datagram header, working counter
#define MAXIMUM_CYCLES 1000000

static char io_map[4096];

static ecx_portt port;
static ec_slavet sub_device_list[EC_MAXSLAVE];
static int sub_device_count;
static ec_groupt groups[EC_MAXGROUP];
static uint8 sii_bytes[EC_MAXEEPBUF];
static uint32 sii_map[EC_MAXEEPBITMAP];
static ec_eringt errors;
static ec_idxstackT indices;
static boolean error;
static int64 dc_time;
static ec_SMcommtypet sync_manager_types[EC_MAX_MAPT];
static ec_PDOassignt assignments[EC_MAX_MAPT];
static ec_PDOdesct descriptions[EC_MAX_MAPT];
static ec_eepromSMt sii_sync_manager;
static ec_eepromFMMUt sii_fmmu;

static ecx_contextt context = {
	.port = &port, .slavelist = sub_device_list, .slavecount = &sub_device_count, .maxslave = EC_MAXSLAVE,
	.grouplist = groups, .maxgroup = EC_MAXGROUP, .esibuf = sii_bytes, .esimap = sii_map, .elist = &errors,
	.idxstack = &indices, .ecaterror = &error, .DCtime = &dc_time, .SMcommtype = sync_manager_types,
	.PDOassign = assignments, .PDOdesc = descriptions, .eepSM = &sii_sync_manager, .eepFMMU = &sii_fmmu,
};

static unsigned long long durations[MAXIMUM_CYCLES];

static unsigned long long nanoseconds(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static int fail(const char *what, int found, int expected)
{
	fprintf(stderr, "SOEM: %s: expected %d, found %d\n", what, expected, found);
	ecx_close(&context);
	return 1;
}

static int exchange(void)
{
	ecx_send_processdata(&context);
	return ecx_receive_processdata(&context, EC_TIMEOUTRET);
}

static int bring_up(const char *interface, int sub_devices, int bytes_each)
{
	int found = 0, size;

	if (!ecx_init(&context, interface))
		return fail("opening the interface", 0, 1);
	for (int attempt = 0; attempt < 100 && found != sub_devices; attempt++) {
		found = ecx_config_init(&context, FALSE);
		if (found != sub_devices)
			usleep(100000);  // the other end may still be starting
	}
	if (found != sub_devices)
		return fail("SubDevices", found, sub_devices);
	size = ecx_config_map_group(&context, io_map, 0);
	if (size != 2 * sub_devices * bytes_each)
		return fail("bytes of process data", size, 2 * sub_devices * bytes_each);
	ecx_statecheck(&context, 0, EC_STATE_SAFE_OP, EC_TIMEOUTSTATE);
	exchange();
	sub_device_list[0].state = EC_STATE_OPERATIONAL;
	ecx_writestate(&context, 0);
	for (int attempt = 0; attempt < 1000; attempt++) {
		exchange();
		if (ecx_statecheck(&context, 0, EC_STATE_OPERATIONAL, 1000) == EC_STATE_OPERATIONAL)
			return 0;
	}
	return fail("state", sub_device_list[0].state, EC_STATE_OPERATIONAL);
}

int main(int count, char **words)
{
	int sub_devices, bytes_each, cycles;

	if (count != 4) {
		fprintf(stderr, "usage: soem-wire INTERFACE SUB_DEVICES BYTES_EACH\n");
		return 2;
	}
	sub_devices = atoi(words[2]);
	bytes_each = atoi(words[3]);
	if (bring_up(words[1], sub_devices, bytes_each))
		return 1;
	printf("ready %d\n", OVERHEAD + 2 * sub_devices * bytes_each);
	fflush(stdout);
	while (scanf("%d", &cycles) == 1) {
		unsigned long long cpu;
		if (cycles < 1 || cycles > MAXIMUM_CYCLES)
			return fail("cycles", cycles, MAXIMUM_CYCLES);
		cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
		for (int cycle = 0; cycle < cycles; cycle++) {
			unsigned long long start = nanoseconds(CLOCK_MONOTONIC);
			int counter = exchange();
			durations[cycle] = nanoseconds(CLOCK_MONOTONIC) - start;
			if (counter != 3 * sub_devices)
				return fail("working counter", counter, 3 * sub_devices);
		}
		printf("%llu", nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		for (int cycle = 0; cycle < cycles; cycle++)
			printf(" %llu", durations[cycle]);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
