# The proxy, with what servers are started by: `node` and `npx`, `uv` and `uvx`.
#
#   docker build -t dragoman .
#   docker run -i --rm dragoman proxy -- npx -y SOME-SERVER
#   docker run --rm --init --stop-timeout 60 -p 127.0.0.1:8080:8080 dragoman \
#       proxy --listen http://0.0.0.0:8080 --url https://example.com/mcp
#
# For a build that can be repeated, name both images by their digest: --build-arg PYTHON=python@sha256:…

ARG NODE=node:22-bookworm-slim
ARG PYTHON=python:3.13-slim-bookworm

FROM ${NODE} AS node

FROM ${PYTHON} AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${PYTHON}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git libatomic1 libstdc++6 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules /usr/local/lib/node_modules
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels pip install --no-cache-dir uv /wheels/*.whl

# Servers are other people's programs: they run as nobody in particular, and can write below their home alone.
RUN useradd --create-home --uid 10001 dragoman
USER dragoman
WORKDIR /home/dragoman
EXPOSE 8080
STOPSIGNAL SIGTERM

# A proxy that hangs does not answer; one that serves a client on stdin and stdout listens nowhere, and is healthy.
ENV DRAGOMAN_HEALTH=http://127.0.0.1:8080/healthz
COPY examples/service/healthy.py /usr/local/lib/healthy.py
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["python", "/usr/local/lib/healthy.py"]
ENTRYPOINT ["dragoman"]
CMD ["--help"]
