"""Clusters of processes, slow to start: every method on 2 and 4 workers, separate schedulers, losses, TLS."""

import datetime
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest

pytest.importorskip("distributed")

from distributed import Client

import quartbench as qb
from tests.conftest import ROOT

from .clusters import KINDS, METHODS, blocks_of, check_methods, linear, local, rows_of

pytestmark = pytest.mark.slow


@contextmanager
def started(module, *arguments, **environment):
    """Run a module of Dask in a process of its own, and give what it says until it is ready."""
    command = [sys.executable, "-m", module, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | environment
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


@contextmanager
def separate(protocol="tcp", options=()):
    """Give the address of a scheduler, its process, and those of its two workers, all of them apart."""
    arguments = ("--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-dashboard", *options)
    with started("distributed.cli.dask_scheduler", *arguments) as scheduler:
        for line in scheduler.stdout:
            if found := re.search(rf"{protocol}://127.0.0.1:\d+", line):
                break
        address = found[0]
        alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "60", *options)
        worker = ("distributed.cli.dask_worker", address, *alone)
        with started(*worker) as first, started(*worker) as second:
            yield address, scheduler, [first, second]


def written(directory, rows, rank=1):
    for i, block in enumerate(blocks_of(rows, rank)):
        np.save(directory / f"{i}.npy", block)
    return directory


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_on_worker_processes_gives_the_answer_of_one_process(workers, kind):
    with local(workers) as client:
        check_methods(client, kind)


def test_a_scheduler_and_workers_apart_give_the_answer_of_one_process():
    with separate() as (address, _, _), Client(address) as client:
        client.wait_for_workers(2, 60)
        check_methods(client, "rank 3", METHODS)


def test_a_killed_worker_does_not_change_the_answer(tmp_path):
    rows, _ = rows_of("dense")
    with local(2) as client:
        form = qb.DaskForm(written(tmp_path, rows), client)
        killed = []

        def kill(state):
            if state.iteration == 5:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        found = qb.solve(qb.Problem(form, linear()), "homcg", metric="identity", rel_gap=1e-10, callback=kill)
        assert killed[0] not in client.run(os.getpid).values()
    wanted = qb.solve(qb.Problem(qb.StackedForm(rows), linear()), "homcg", metric="identity", rel_gap=1e-10)
    assert found.success
    assert found.fun == pytest.approx(wanted.fun, rel=1e-10)
    assert found.nit > 5


def test_arrays_of_the_driver_survive_a_killed_worker():
    rows, _ = rows_of("sparse")
    with local(2) as client:
        form = qb.DaskForm(blocks_of(rows, 1), client)
        image = form.image(linear())
        before = form.value_from_image(image)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert form.value_from_image(image) == before


def test_a_worker_that_hangs_is_given_up(tmp_path):
    rows, _ = rows_of("dense")
    with dask.config.set({"distributed.scheduler.worker-ttl": "4s"}), local(2) as client:
        form = qb.DaskForm(written(tmp_path, rows), client, timeout=120.0)
        value = form.value(linear())
        stopped = next(iter(client.run(os.getpid).values()))
        os.kill(stopped, signal.SIGSTOP)
        assert form.value(linear()) == pytest.approx(value, rel=1e-12)


def test_a_hanging_round_ends_at_its_limit(tmp_path):
    rows, _ = rows_of("dense")
    with local(2) as client:
        form = qb.DaskForm(written(tmp_path, rows), client)
        form.engine.timeout = 3.0
        pids = client.run(os.getpid).values()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(qb.LostError, match=r"a round has taken \d+ s"):
            form.value(linear())
        assert time.monotonic() - started < 60.0  # bounded, which is not a measure of speed
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_what_cannot_be_mended_is_an_error_with_the_best_point(tmp_path, lost):
    rows, _ = rows_of("dense")
    with separate() as (address, scheduler, workers), Client(address, timeout=10) as client:
        client.wait_for_workers(2, 60)
        form = qb.DaskForm(written(tmp_path, rows), client)

        def kill(state):
            if state.iteration == 3:
                form.engine.timeout = 10.0  # from here on: workers that start on a busy machine may take longer
                for process in [scheduler] if lost == "scheduler" else workers:
                    os.kill(process.pid, signal.SIGKILL)

        with pytest.raises(qb.LostError, match="the rows on the cluster are out of reach") as caught:
            qb.solve(qb.Problem(form, linear()), "homgd", metric="identity", rel_gap=1e-12, callback=kill)
    same = qb.Problem(qb.StackedForm(rows), linear())
    assert same.value(caught.value.x) < 0.9 * qb.solve(same).fun < 0.0


# TLS ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path):
    """Return the files of a certificate for this machine, signed by itself, and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quartbench test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    directory = tmp_path / "tls"
    directory.mkdir()
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory / "cert.pem", directory / "key.pem"


def test_solve_takes_a_scheduler_over_tls(tmp_path, certificate):
    rows, _ = rows_of("dense")
    (tmp_path / "rows").mkdir()
    directory = written(tmp_path / "rows", rows)
    np.save(tmp_path / "c.npy", linear())
    cert, key = map(str, certificate)
    options = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    trusted = {tls + "CA_FILE": cert, tls + "CLIENT__CERT": cert, tls + "CLIENT__KEY": key}
    with separate(protocol="tls", options=options) as (address, _, _):
        command = [sys.executable, "-m", "quartbench", "solve", directory, tmp_path / "c.npy"]
        command += ["--scheduler", address, "--json"]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)} | trusted, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        refused = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300
        )
    wanted = qb.solve(qb.Problem(qb.StackedForm(rows), linear()))
    assert json.loads(done.stdout)["fun"] == pytest.approx(wanted.fun, rel=2e-6)
    assert refused.returncode == 2
    assert "no scheduler can be reached" in refused.stderr
