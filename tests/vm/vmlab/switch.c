// SPDX-License-Identifier: GPL-2.0
/*
 * switch.c - the Ethernet switch between three and more nodes: switch FD...
 *
 * Each argument is one end of a socket pair of type SOCK_SEQPACKET, of which QEMU has the other end;
 * one message is one frame. The switch learns which address is behind which port, and floods frames
 * for unknown addresses. It queues up to QUEUE frames for a slow port and drops further ones, so
 * that a stopped machine blocks no other. When its standard input, a pipe from the harness, ends,
 * the switch ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_PORTS 64
#define MAX_FRAME 65536
#define QUEUE     4096
#define BURST     64 /* frames taken from a port before the next has its turn */
#define TABLE     1024

struct frame {
	struct frame *next;
	size_t length;
	uint8_t data[];
};

struct port {
	int fd;
	struct frame *first, **last;
	unsigned int queued;
};

static struct port ports[MAX_PORTS];
static int nports;

/* Addresses by hash. On a collision the older one is lost, and learned again after a flood. */
static struct {
	uint8_t address[6];
	int port; /* + 1; 0: empty */
} table[TABLE];

static unsigned int hash(const uint8_t *address)
{
	return (address[5] | address[4] << 8 | address[3] << 4) % TABLE;
}

static void learn(const uint8_t *address, int port)
{
	unsigned int at = hash(address);

	memcpy(table[at].address, address, 6);
	table[at].port = port + 1;
}

/* The port behind an address, or -1. */
static int look_up(const uint8_t *address)
{
	unsigned int at = hash(address);

	if (address[0] & 1 || !table[at].port || memcmp(table[at].address, address, 6))
		return -1;
	return table[at].port - 1;
}

/* False if the port can take no more now. A frame refused for another reason counts as sent. */
static bool send_now(struct port *p, const void *data, size_t length)
{
	return send(p->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

static void forward(struct port *p, const void *data, size_t length)
{
	struct frame *f;

	if (!p->first && send_now(p, data, length))
		return;
	if (p->queued == QUEUE)
		return;
	f = malloc(sizeof(*f) + length);
	if (!f)
		return;
	f->next = NULL;
	f->length = length;
	memcpy(f->data, data, length);
	*p->last = f;
	p->last = &f->next;
	p->queued++;
}

static void flush(struct port *p)
{
	struct frame *f;

	while ((f = p->first) && send_now(p, f->data, f->length)) {
		p->first = f->next;
		if (!p->first)
			p->last = &p->first;
		p->queued--;
		free(f);
	}
}

static void receive(int from)
{
	static uint8_t data[MAX_FRAME];

	for (int i = 0; i < BURST; i++) {
		ssize_t n = recv(ports[from].fd, data, sizeof(data), MSG_DONTWAIT);
		int to;

		if (n < 14)
			return;
		learn(data + 6, from);
		to = look_up(data);
		for (int p = 0; p < nports; p++)
			if (p != from && (to < 0 || to == p))
				forward(&ports[p], data, n);
	}
}

int main(int argc, char **argv)
{
	struct pollfd fds[MAX_PORTS + 1];

	nports = argc - 1;
	if (nports < 1 || nports > MAX_PORTS) {
		fprintf(stderr, "usage: %s FD...\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < nports; i++) {
		ports[i].fd = atoi(argv[i + 1]);
		ports[i].last = &ports[i].first;
	}
	for (;;) {
		fds[nports] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		for (int i = 0; i < nports; i++)
			fds[i] = (struct pollfd){
				.fd = ports[i].fd,
				.events = POLLIN | (ports[i].first ? POLLOUT : 0),
			};
		if (poll(fds, nports + 1, -1) < 0) {
			if (errno == EINTR)
				continue;
			perror("switch: poll");
			return 1;
		}
		if (fds[nports].revents)
			return 0;
		for (int i = 0; i < nports; i++) {
			if (fds[i].revents & POLLOUT)
				flush(&ports[i]);
			if (fds[i].revents & POLLIN)
				receive(i);
		}
	}
}
