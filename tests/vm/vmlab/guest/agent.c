// SPDX-License-Identifier: GPL-2.0
/*
 * agent.c - the guest's end of tests/vm: runs commands for the host, over a virtio-serial port.
 *
 * It is process 1 (init has exec'ed it), so it also reaps orphans, and must never exit. One thread runs
 * one poll loop, and nothing blocks: commands run in parallel, and output is passed on as it comes.
 *
 * Everything on the port is a frame: struct frame, then `length` bytes. The host numbers its commands;
 * all frames about a command carry its number. agent.py has the other end and the same frame types.
 *
 * While more than OUT_LIMIT bytes wait for the host, the agent reads no pipes, so commands block as on
 * a slow terminal. The host sends input at most a window ahead of the agent's F_CREDIT.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/random.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT_NAME "lite.agent"
#define OUT_LIMIT (256 * 1024)
#define CHUNK     (32 * 1024)
#define MAX_FRAME (1024 * 1024)

enum frame_type {
	/* host to guest */
	F_RUN = 1,    /* struct run_request, then strings: directory, arguments, environment */
	F_STDIN = 2,  /* data; without data: end of file */
	F_KILL = 3,   /* u32 signal, to the process group */
	F_RESIZE = 4, /* u16 rows, u16 columns of the terminal */
	F_WAKE = 5,   /* struct wake_request; not about a command */
	/* guest to host */
	F_HELLO = 16,
	F_STDOUT = 17,
	F_STDERR = 18,
	F_CREDIT = 19, /* u32 bytes of input that the command has taken */
	F_EXIT = 20,   /* u32 status as from wait(); follows all output */
	F_ERROR = 21,  /* text: the command could not be started */
};

struct frame {
	uint32_t length;
	uint32_t id;
	uint32_t type;
};

struct run_request {
	uint32_t flags;
	uint32_t uid;
	uint32_t gid;
	uint32_t argc;
	uint32_t envc;
};

#define RUN_TERMINAL 1u

struct wake_request {
	uint64_t seconds;
	uint64_t nanoseconds;
	char seed[32];
};

struct buffer {
	char *data;
	size_t start, end, size;
};

struct job {
	struct job *next;
	uint32_t id;
	pid_t pid; /* 0 once it is reaped */
	int in;    /* -1: closed; the same for out and err */
	int out;
	int err;
	bool terminal;
	bool in_eof;       /* close `in` when `input` is empty */
	bool discard;      /* F_EXIT is sent: discard output, so that children do not block */
	struct buffer input;
};

static struct job *jobs;
static int port;
static struct buffer from_host, to_host;

/*
 * Ends the machine, because process 1 must not exit. The message goes to the kernel's log, which is
 * written at once; what a terminal still holds would be lost.
 */
static void fatal(const char *what)
{
	int log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	dprintf(log, "agent: %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static size_t buffer_used(const struct buffer *b)
{
	return b->end - b->start;
}

static void buffer_reserve(struct buffer *b, size_t n)
{
	if (b->start == b->end)
		b->start = b->end = 0;
	if (b->end + n <= b->size)
		return;
	memmove(b->data, b->data + b->start, buffer_used(b));
	b->end -= b->start;
	b->start = 0;
	if (b->end + n > b->size) {
		b->size = (b->end + n) * 2;
		b->data = realloc(b->data, b->size);
		if (!b->data)
			fatal("realloc");
	}
}

static void buffer_add(struct buffer *b, const void *data, size_t n)
{
	buffer_reserve(b, n);
	memcpy(b->data + b->end, data, n);
	b->end += n;
}

static void send_frame(uint32_t id, enum frame_type type, const void *data, size_t n)
{
	struct frame f = { .length = n, .id = id, .type = type };

	buffer_add(&to_host, &f, sizeof(f));
	buffer_add(&to_host, data, n);
}

static struct job *job_find(uint32_t id)
{
	struct job *j = jobs;

	while (j && j->id != id)
		j = j->next;
	return j;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Runs in the child, and never returns. Its messages go to the host as the command's error output. */
static void job_exec(const struct run_request *r, const char *dir, char **argv, char **envp)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir(dir) || setgroups(0, NULL) || setgid(r->gid) || setuid(r->uid)) {
		dprintf(2, "agent: cannot become %u:%u in %s: %s\n", r->uid, r->gid, dir, strerror(errno));
		_exit(126);
	}
	execvpe(argv[0], argv, envp);
	dprintf(2, "agent: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static pid_t fork_terminal(struct job *j)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int master;
	pid_t pid = forkpty(&master, NULL, NULL, &size);

	if (pid > 0) {
		fcntl(master, F_SETFD, FD_CLOEXEC);
		fcntl(master, F_SETFL, O_NONBLOCK);
		j->out = master;
		j->in = fcntl(master, F_DUPFD_CLOEXEC, 0);
	}
	return pid;
}

static pid_t fork_pipes(struct job *j)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	pid_t pid = -1;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		goto out;
	pid = fork();
	if (!pid) {
		setsid();
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		return 0;
	}
	if (pid > 0) {
		j->in = in[1];
		j->out = out[0];
		j->err = err[0];
		in[1] = out[0] = err[0] = -1;
		fcntl(j->in, F_SETFL, O_NONBLOCK);
		fcntl(j->out, F_SETFL, O_NONBLOCK);
		fcntl(j->err, F_SETFL, O_NONBLOCK);
	}
out:
	for (int i = 0; i < 2; i++) {
		close_fd(&in[i]);
		close_fd(&out[i]);
		close_fd(&err[i]);
	}
	return pid;
}

/* Cuts `count` strings out of [*at, end); returns a NULL-terminated list for exec. */
static char **cut_strings(char **at, char *end, uint32_t count)
{
	char **list;

	if (count > MAX_FRAME)
		return NULL;
	list = calloc(count + 1, sizeof(*list));
	for (uint32_t i = 0; list && i < count; i++) {
		char *nul = *at < end ? memchr(*at, 0, end - *at) : NULL;

		if (!nul) {
			free(list);
			return NULL;
		}
		list[i] = *at;
		*at = nul + 1;
	}
	return list;
}

static void job_start(uint32_t id, char *payload, size_t n)
{
	char *at = payload + sizeof(struct run_request), *end = payload + n;
	struct run_request r;
	char **dir = NULL, **argv = NULL, **envp = NULL;
	struct job *j = NULL;
	const char *error = "malformed request";

	if (n < sizeof(r))
		goto out;
	memcpy(&r, payload, sizeof(r));
	dir = cut_strings(&at, end, 1);
	argv = dir ? cut_strings(&at, end, r.argc) : NULL;
	envp = argv ? cut_strings(&at, end, r.envc) : NULL;
	if (!envp || !r.argc)
		goto out;
	error = "out of memory";
	j = calloc(1, sizeof(*j));
	if (!j)
		goto out;
	j->id = id;
	j->in = j->out = j->err = -1;
	j->terminal = r.flags & RUN_TERMINAL;
	j->pid = j->terminal ? fork_terminal(j) : fork_pipes(j);
	if (!j->pid)
		job_exec(&r, dir[0], argv, envp);
	error = strerror(errno);
	if (j->pid < 0)
		goto out;
	j->next = jobs;
	jobs = j;
	j = NULL;
	error = NULL;
out:
	if (error)
		send_frame(id, F_ERROR, error, strlen(error));
	free(j);
	free(dir);
	free(argv);
	free(envp);
}

/* Passes on a chunk of what the pipe holds; with `all` everything, beyond OUT_LIMIT, too. */
static void job_read(struct job *j, int *fd, enum frame_type type, bool all)
{
	static char chunk[CHUNK];

	while (*fd >= 0) {
		ssize_t n = read(*fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) { /* EIO: a terminal without a program */
			close_fd(fd);
			return;
		}
		if (!j->discard)
			send_frame(j->id, type, chunk, n);
		if (!all)
			return;
	}
}

static void job_write(struct job *j)
{
	uint32_t taken = 0;

	while (j->in >= 0 && buffer_used(&j->input)) {
		ssize_t n = write(j->in, j->input.data + j->input.start, buffer_used(&j->input));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) { /* the command has closed its input: drop the rest */
			n = buffer_used(&j->input);
			close_fd(&j->in);
		}
		j->input.start += n;
		taken += n;
	}
	if (j->in < 0) {
		taken += buffer_used(&j->input);
		j->input.start = j->input.end = 0;
	}
	if (taken)
		send_frame(j->id, F_CREDIT, &taken, sizeof(taken));
	if (j->in_eof && !buffer_used(&j->input)) {
		/* A terminal's end of file is a character; its output is still to be read. */
		if (!j->terminal)
			close_fd(&j->in);
		else if (j->in >= 0 && write(j->in, "\004", 1) < 0)
			close_fd(&j->in);
		j->in_eof = false;
	}
}

static void job_exited(struct job *j, uint32_t status)
{
	job_read(j, &j->out, F_STDOUT, true);
	job_read(j, &j->err, F_STDERR, true);
	send_frame(j->id, F_EXIT, &status, sizeof(status));
	j->pid = 0;
	j->discard = true;
	close_fd(&j->in);
}

static void reap_children(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct job *j = jobs;

		while (j && j->pid != pid)
			j = j->next;
		if (j)
			job_exited(j, status);
	}
}

/* Frees the jobs of which the process is reaped and no other process holds the pipes. */
static void free_finished_jobs(void)
{
	for (struct job **at = &jobs; *at;) {
		struct job *j = *at;

		if (j->pid || j->out >= 0 || j->err >= 0) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		free(j->input.data);
		free(j);
	}
}

/* A machine that was saved is as late as it was then, and would draw the same random numbers as others made from it. */
static void wake(const char *payload, uint32_t length)
{
	struct wake_request r;
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	if (length != sizeof(r))
		fatal("the length of a request");
	memcpy(&r, payload, sizeof(r));
	if (clock_settime(CLOCK_REALTIME, &(struct timespec){ .tv_sec = r.seconds, .tv_nsec = r.nanoseconds }))
		fatal("setting the clock");
	if (fd < 0 || write(fd, r.seed, sizeof(r.seed)) != sizeof(r.seed) || ioctl(fd, RNDRESEEDCRNG))
		fatal("seeding the random numbers");
	close(fd);
}

static void handle_frame(const struct frame *f, char *payload)
{
	struct job *j = job_find(f->id);
	uint32_t u32;
	uint16_t u16[2];

	if (f->type == F_RUN) {
		job_start(f->id, payload, f->length);
		return;
	}
	if (f->type == F_WAKE) {
		wake(payload, f->length);
		return;
	}
	if (!j) /* the command has ended while the frame was on its way */
		return;
	switch (f->type) {
	case F_STDIN:
		buffer_add(&j->input, payload, f->length);
		j->in_eof |= !f->length;
		job_write(j);
		break;
	case F_KILL:
		if (f->length < sizeof(u32) || !j->pid)
			break;
		memcpy(&u32, payload, sizeof(u32));
		/* There is no process group until the child has called setsid(). */
		if (kill(-j->pid, u32))
			kill(j->pid, u32);
		break;
	case F_RESIZE:
		if (f->length < sizeof(u16) || !j->terminal || j->out < 0)
			break;
		memcpy(u16, payload, sizeof(u16));
		ioctl(j->out, TIOCSWINSZ, &(struct winsize){ .ws_row = u16[0], .ws_col = u16[1] });
		break;
	}
}

static void port_read(void)
{
	struct frame f;
	ssize_t n;

	buffer_reserve(&from_host, CHUNK);
	n = read(port, from_host.data + from_host.end, CHUNK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0)
		fatal("reading the port");
	from_host.end += n;
	while (buffer_used(&from_host) >= sizeof(f)) {
		memcpy(&f, from_host.data + from_host.start, sizeof(f));
		errno = EMSGSIZE;
		if (f.length > MAX_FRAME)
			fatal("frame from the host");
		if (buffer_used(&from_host) < sizeof(f) + f.length)
			break;
		handle_frame(&f, from_host.data + from_host.start + sizeof(f));
		from_host.start += sizeof(f) + f.length;
	}
}

static void port_write(void)
{
	ssize_t n = write(port, to_host.data + to_host.start, buffer_used(&to_host));

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		fatal("writing the port");
	if (n > 0)
		to_host.start += n;
}

/* Opens the port, or returns -1. Its name is only in sysfs, because there is no udev to make a link. */
static int port_find(void)
{
	static const char class[] = "/sys/class/virtio-ports";
	DIR *dir = opendir(class);
	struct dirent *e;
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir))) {
		char path[512], name[64] = "";
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/name", class, e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strcmp(name, PORT_NAME "\n")) {
			snprintf(path, sizeof(path), "/dev/%s", e->d_name);
			fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* QEMU's messages with the names of ports may reach the driver after this program has started. */
static int port_open(void)
{
	for (int i = 0; i < 1000; i++) {
		int fd = port_find();

		if (fd >= 0)
			return fd;
		usleep(10000);
	}
	fatal("no virtio port named " PORT_NAME);
	return -1;
}

static void add_poll(struct pollfd **fds, size_t *count, int fd, short events)
{
	static size_t size;

	if (*count == size) {
		size = size * 2 + 16;
		*fds = realloc(*fds, size * sizeof(**fds));
		if (!*fds)
			fatal("realloc");
	}
	(*fds)[(*count)++] = (struct pollfd){ .fd = fd, .events = events };
}

int main(void)
{
	struct pollfd *fds = NULL;
	sigset_t child;
	int sigfd;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigfd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
	if (sigfd < 0)
		fatal("signalfd");
	port = port_open();
	send_frame(0, F_HELLO, "", 0);

	for (;;) {
		struct signalfd_siginfo info;
		bool full = buffer_used(&to_host) > OUT_LIMIT;
		size_t count = 0, i = 0;

		add_poll(&fds, &count, sigfd, POLLIN);
		add_poll(&fds, &count, port, POLLIN | (buffer_used(&to_host) ? POLLOUT : 0));
		/* Three entries per job, in the order of the list; poll skips negative descriptors. */
		for (struct job *j = jobs; j; j = j->next) {
			add_poll(&fds, &count, buffer_used(&j->input) ? j->in : -1, POLLOUT);
			add_poll(&fds, &count, full && !j->discard ? -1 : j->out, POLLIN);
			add_poll(&fds, &count, full && !j->discard ? -1 : j->err, POLLIN);
		}
		if (poll(fds, count, -1) < 0) {
			if (errno == EINTR)
				continue;
			fatal("poll");
		}

		/* Jobs before the port, which may add jobs that have no entries in fds. */
		i = 2;
		for (struct job *j = jobs; j; j = j->next, i += 3) {
			if (fds[i].revents)
				job_write(j);
			if (fds[i + 1].revents)
				job_read(j, &j->out, F_STDOUT, false);
			if (fds[i + 2].revents)
				job_read(j, &j->err, F_STDERR, false);
		}
		if (fds[0].revents) {
			while (read(sigfd, &info, sizeof(info)) > 0)
				;
			reap_children();
		}
		if (fds[1].revents & POLLIN)
			port_read();
		if (fds[1].revents & POLLOUT)
			port_write();
		free_finished_jobs();
	}
}
